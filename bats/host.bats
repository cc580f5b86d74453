#!/usr/bin/env bats
# The host in names is the node name under which this machine first locked in the directory.
# shellcheck disable=SC2154,SC2153 # variables of setup

load common

# Without a machine id, as in most containers, another boot id may belong to another machine.
setup_host() {
	[ -s /etc/machine-id ] || [ -s /var/lib/dbus/machine-id ] || skip 'no machine id here: see systemd-machine-id-setup(1)'
	unset ADLOCK_HOST
	for uts in 'unshare --uts' 'unshare -r --uts'; do
		$uts true 2>/dev/null && return
	done
	skip 'no uts namespaces'
}

# named NODE COMMAND... runs the command on this machine under another node name. hostname(1) trims it.
# shellcheck disable=SC2016 # the inner shell's
named() { $uts sh -c '{ printf %s "$1" >/proc/sys/kernel/hostname || hostname "$1"; } 2>/dev/null && shift && exec "$@"' sh "$@"; }

kept() { echo "$ADLOCK_DIR"/host.*; }

# bats test_tags=core
@test "a renamed machine keeps its host and its intervals" {
	setup_host
	script job <<-'E'
		adlock_age a b
		adlock_get a b 60 || { note "$ADLOCK_VERDICT"; exit 0; }
		note "got"
		adlock_age a b >/dev/null
		adlock_release
		adlock_age a b
	E
	expect 0 $'never\n0' named before.example "${shell[@]}" "$T/job"
	expect 0 0 named after "${shell[@]}" "$T/job"
	assert_equal "$(cat "$T/notes")" $'got\ntoo-soon'
	[ -e "$ADLOCK_DIR/last.job.before_example.a.b" ]
	run -75 named after "$ADLOCK_BIN" run --if-elapsed 60m --program job --operator a --operand b -- echo ran
	refute_output
}

@test "helper and script agree on the host, whichever comes first" {
	setup_host
	script job <<<'adlock_with run x -- true'
	for first in helper script; do
		ADLOCK_DIR=$T/$first
		for node in before after; do
			[ "$first $node" = 'script before' ] || named "$node" "$ADLOCK_BIN" run --name x -- true
			ADLOCK_PROGRAM=adlock named "$node" "${shell[@]}" "$T/job"
		done
		run -0 ls "$ADLOCK_DIR"
		assert_line last.adlock.before.run.x
		refute_line --partial after
	done
}

# bats test_tags=core
@test "a script reads the host without starting a process" {
	command -v strace >/dev/null || skip 'no strace'
	strace -qq -o /dev/null true || skip 'strace is not permitted'
	setup_host
	script job <<-'E'
		adlock_get editfile /etc/motd
		adlock_release
	E
	launch job
	strace -qq -o "$T/trace" -e trace=clone,clone3,fork,vfork "${shell[@]}" "$T/job"
	expect 0 2 grep -c 'fork\|clone' "$T/trace"
}

# bats test_tags=core:zsh
@test "a script prints nothing on a machine without a machine id" {
	[ "$(id -u)" = 0 ] && unshare --mount true || skip "needs root and a mount namespace"
	unset ADLOCK_HOST
	mkdir "$T/etc"
	script job <<<'adlock_get a b && adlock_release'
	for dir in /etc /var/lib/dbus; do
		[ ! -d $dir ] || shell=(unshare --mount sh -c "mount --bind $T/etc $dir && exec \"\$@\"" sh "${shell[@]}")
	done
	quietly job
	run ! compgen -G "$ADLOCK_DIR/host.*"
}

@test "adlock_age and a dry run make no host file" {
	setup_host
	script job <<<'adlock_age a b'
	expect 0 never launch job
	[ ! -e "$ADLOCK_DIR" ]
	mkdir -m 700 "$ADLOCK_DIR"
	run -0 launch job
	run -0 "$ADLOCK_BIN" run --dry-run -- true
	assert_equal "$(ls "$ADLOCK_DIR")" ''
}

@test "a damaged host file is an error, and no job runs" {
	setup_host
	"$ADLOCK_BIN" run --name x -- true
	script job <<<'adlock_get a b && note ran'
	host=$(kept)
	for content in '' half $'a b\n' $'../x\n' $'\nx\n'; do
		printf %s "$content" >"$host"
		run -74 launch job
		assert_output --regexp "^adlock: $host: is damaged: .*\$"
		run -74 "$ADLOCK_BIN" run --name x -- echo ran
		assert_output --partial "$host: is damaged: "
	done
	rm "$host"
	ln -s /etc/hostname "$host"
	expect 77 "adlock: $host: not a regular file: adlock has not made it; move it away" launch job
	rm "$host"
	mkfifo "$host"
	run -77 launch job
	run -77 "$ADLOCK_BIN" run --name x -- echo ran
	assert_equal "$(cat "$T/notes")" ''
}

@test "two node names in a shared directory stay two hosts" {
	setup_host
	"$ADLOCK_BIN" run --name x -- true
	printf '*\n' >"$(kept)"
	script job <<<'adlock_with a b -- true'
	for node in one two ' three '; do
		named "$node" "$ADLOCK_BIN" run --name x -- true
		named "$node" "${shell[@]}" "$T/job"
		named "$node" "${shell[@]}" -c '. "$ADLOCK_SH"; adlock_with a plain -- true' job # with the usual IFS
		node=${node//[ ]/}
		[ -e "$ADLOCK_DIR/last.adlock.$node.run.x" ]
		[ -e "$ADLOCK_DIR/last.job.$node.a.b" ]
		[ -e "$ADLOCK_DIR/last.job.$node.a.plain" ]
	done
}

@test "a get fails if the helper answers with no host" {
	setup_host
	in_between <<<'case $1 in host) mkdir "$T/asked" 2>/dev/null && exit ;; esac'
	job_notes_and_prints $'1\n0' <<-'E'
		adlock_get a b || note "$?"
		adlock_get a b
		note "$?"
		adlock_release
	E
	assert_output --partial 'the helper died, with status 1'
}
