# Functions that the tests share. A test writes its scripts with `script`, runs them in
# $ADLOCK_TEST_SHELL with `launch` or `start`, and reads what they noted.
# shellcheck shell=bash

bats_require_minimum_version 1.5.0
load node_modules/bats-support/load
load node_modules/bats-assert/load

setup() {
	# When a test fails, bats has left the function that knows its countdown. Unless that is ended, it
	# keeps the output open until the time is over, and then signals the pid that the test had.
	[ -z "${BATS_killer_pid-}" ] || declare -g "BATS_killer_pid=$BATS_killer_pid"
	umask 022 # in some tests another user reads the scripts
	local name=${ADLOCK_TEST_SHELL:-sh}
	read -ra shell <<<"$name"
	root=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	local helper=${ADLOCK_TEST_BIN:-$root/build/adlock}
	unset "${!ADLOCK_@}" 2>/dev/null || true
	export ADLOCK_TEST_SHELL=$name
	export T=$BATS_TEST_TMPDIR
	export ADLOCK_SH=$root/sh/adlock.sh
	export ADLOCK_BIN=$helper
	export ADLOCK_DIR=$T/locks
	export ADLOCK_HOST=dax
	export ADLOCK_PAUSE=1s
	export ADLOCK_TEST_SETTINGS='eu noclobber traps ifs'
	export LC_ALL=C.UTF-8
	prelude=$BATS_TEST_DIRNAME/prelude.sh
	: >"$T/notes"
}

# Each process that a test started has the test's lock directory in its environment.
teardown() {
	local pid
	for pid in $(leftovers .); do
		kill -KILL "$pid" 2>/dev/null || true
	done
	[ -z "${public-}" ] || rm -rf "$public"
}

# leftovers PATTERN lists the live processes of this test whose command line matches.
leftovers() {
	local process
	grep -lsaF "ADLOCK_DIR=$BATS_TEST_TMPDIR/" /proc/[0-9]*/environ | while read -r process; do
		process=${process%/environ}
		grep -qs '^State:.Z' "$process/status" && continue
		grep -qsa -- "$1" "$process/cmdline" && echo "${process#/proc/}"
	done
	return 0
}

# unprivileged makes a test that root's rights would falsify go on as an unprivileged user, in a
# directory that this user can enter. The array unprivileged starts a program as this user.
unprivileged() {
	unprivileged=()
	[ "$(id -u)" = 0 ] || return 0
	unprivileged=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	public=$(mktemp -d)
	chmod 755 "$public"
	mkdir "$public/T"
	chown 65534:65534 "$public/T" # adlock refuses a lock directory below one that all users may write
	cp "$ADLOCK_BIN" "$ADLOCK_SH" "$prelude" "$public"
	T=$public/T ADLOCK_BIN=$public/${ADLOCK_BIN##*/} ADLOCK_SH=$public/adlock.sh prelude=$public/prelude.sh
	shell=("${unprivileged[@]}" "${shell[@]}")
}

# crashed STATUS: the shell itself crashed, as zsh 5.9 sometimes does under many signals. Other
# tests show what happens to a dead shell's lock.
crashed() { [[ ${shell[0]} = zsh && $1 = 13[489] ]]; }

# script NAME writes standard input, behind the prelude, to a script.
script() {
	{
		echo ". '$prelude'"
		cat
	} >"$T/$1"
}

# launch NAME [ARG...] runs a script in the shell under test.
launch() {
	"${shell[@]}" "$T/$1" "${@:2}" 3>&-
}

# start NAME [ARG...] runs a script in the background; its pid is $!, its output
# in NAME.out.
start() {
	"${shell[@]}" "$T/$1" "${@:2}" >>"$T/$1.out" 2>&1 3>&- &
}

# start_to FILE NAME [ARG...] starts a script, and waits until it has made the file in $T.
start_to() {
	start "${@:2}"
	eventually test -e "$T/$1"
}

# hung NAME [ARG...] starts a script that takes a lock and then calls `hang`; its pid is $hung.
hung() {
	start_to hangs "$@"
	hung=$!
}

# newcomer writes the script `new`: with the given arguments it gets `a b` of `job`, and notes the verdict.
newcomer() {
	script new <<-'E'
		ADLOCK_PROGRAM=job
		: >|"$T/waits"
		if adlock_get a b ${1-0} ${2-}; then
			note "$ADLOCK_VERDICT"
			adlock_release
		else
			note "$? $ADLOCK_VERDICT"
		fi
	E
}

# expect STATUS OUTPUT COMMAND... runs the command, which must end with STATUS and print OUTPUT.
expect() {
	run "${@:3}"
	assert_equal "$status" "$1"
	assert_output "$2"
}

# quietly NAME [ARG...] runs a script, which must succeed and print nothing.
quietly() { expect 0 '' launch "$@"; }

# job_notes_and_prints NOTES runs standard input as the script `job`, which must succeed and note
# NOTES. $output is what it printed.
job_notes_and_prints() {
	script job
	run launch job
	assert_success
	assert_equal "$(cat "$T/notes")" "$1"
}

# job_notes NOTES: the same, and it prints nothing.
job_notes() {
	job_notes_and_prints "$1"
	assert_output ''
}

# in_between puts standard input, in shell, before each run of the helper.
in_between() {
	{
		echo '#!/bin/sh'
		cat
		echo 'exec "$T_HELPER" "$@"'
	} >"$T/helper"
	chmod 755 "$T/helper"
	export T_HELPER=$ADLOCK_BIN ADLOCK_BIN=$T/helper
}

# kills_itself is a command that a signal ends, and that leaves a process of its session behind. The process reads $T/go.
kills_itself='sh -c '"'"'sh -c "echo \$\$ >\"\$T/left\"; read -r go <\"\$T/go\"" & until [ -s "$T/left" ]; do sleep 0.01; done; kill -KILL $$'"'"

# eventually COMMAND... waits until COMMAND succeeds, and fails after a time that is an upper bound
# for a busy machine, not a measure.
eventually() {
	local end=$((SECONDS + 90))
	until "$@"; do
		((SECONDS < end)) || fail "not within 90 s: $*"
		sleep 0.05
	done
}

gone() { ! kill -0 "$1" 2>/dev/null || grep -qs '^State:.Z' "/proc/$1/status"; }
noted() { grep -qxF -- "$1" "$T/notes"; }

# The files of an atom of the script `job`, and whether it is held.
lock_of() { echo "$ADLOCK_DIR/lock.job.dax.$1.$2"; }
last_of() { echo "$ADLOCK_DIR/last.job.dax.$1.$2"; }
held() { [ -e "$(lock_of "$@")" ]; }

# assert_free: no lock is there.
assert_free() { refute compgen -G "$ADLOCK_DIR/lock.*"; }

# backdate FILE DURATION: the lock was taken DURATION before this machine booted.
backdate() {
	local content
	content=$(sed "s/^monotonic=.*/monotonic=-$2/" "$1")
	printf '%s\n' "$content" >|"$1"
}

assert_notes() {
	run cat "$T/notes"
	assert_output "$(cat)"
}

# older SECONDS FILE: the file is at least that old, by the file system's clock.
older() {
	local now before
	touch "$T/clock"
	now=$(stat -c %.3Y "$T/clock")
	before=$(stat -c %.3Y "$2")
	((${now/./} - ${before/./} >= $1 * 1000))
}
