# ADLOCK_FLOCK: a file is locked beside the atom, as by flock(1).
load common

# setup of common.bash, and a file to lock.
eval "common_$(declare -f setup)"
setup() {
	type -P flock >/dev/null || skip 'no flock(1)'
	common_setup
	file=$T/file
	export ADLOCK_FLOCK=$file
}

# locked: another process could not lock the file now.
locked() { ! flock -n "$file" true; }
free() { flock -n "$file" true; }

# holds_it: flock(1), whose pid is $holder, holds the file until $T/let-go is there.
holds_it() {
	flock "$file" sh -c ': >"$1"; until [ -e "$2" ]; do sleep 0.05; done' sh "$T/held" "$T/let-go" 3>&- &
	holder=$!
	eventually test -e "$T/held"
}

# bats test_tags=core
@test "the file is locked while the command of adlock_with runs" {
	script job <<-'E'
		adlock_with a b -- sh -c 'flock -n "$0" true; echo "$?" >>"$T/notes"; exit 7' "$ADLOCK_FLOCK" || note "$? $ADLOCK_VERDICT"
	E
	run launch job
	assert_success
	assert_output ''
	assert_notes <<<$'1\n7 acquired'
	free
}

# bats test_tags=core
@test "a file that another program holds denies the atom" {
	holds_it
	script job <<-'E'
		adlock_with a b -- echo ran || note "$? $ADLOCK_VERDICT"
	E
	run launch job
	assert_output ''
	assert_notes <<<'75 busy'
	refute [ -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
	: >"$T/let-go"
	wait "$holder"
}

# bats test_tags=core
@test "a wait lasts until the file is let go" {
	holds_it
	script job <<-'E'
		ADLOCK_WAIT=60s
		adlock_with a b -- echo ran
	E
	start job
	first=$!
	eventually grep -qs event=wait "$ADLOCK_DIR/program.dax.runlog"
	refute [ -s "$T/job.out" ]
	: >"$T/let-go"
	wait "$first"
	assert_equal "$(cat "$T/job.out")" ran
	wait "$holder"
	free
}

# bats test_tags=core
@test "a process left behind does not keep the file" {
	script job <<-'E'
		adlock_with a b -- sh -c 'sleep 60 >/dev/null 2>&1 & echo $! >"$T/left"'
	E
	run launch job
	assert_success
	free
	kill "$(cat "$T/left")"
}

# bats test_tags=core
@test "the command keeps the file if its script is killed" {
	script job <<-'E'
		adlock_with a b -- sh -c 'echo $$ >"$T/in"; read -r go <"$T/go"'
	E
	mkfifo "$T/go"
	start job
	first=$!
	eventually test -s "$T/in"
	kill -KILL "$first"
	eventually gone "$first"
	locked
	echo go >"$T/go"
	eventually gone "$(cat "$T/in")"
	free
}

# bats test_tags=core
@test "what cannot keep the file locked is refused" {
	script job <<-'E'
		work() { :; }
		adlock_with a b -- work || note "$?"
		adlock_get a b || note "$?"
		unset ADLOCK_FLOCK
		adlock_with a b -- work && adlock_get a b && note "$?"
	E
	run launch job
	assert_success
	assert_output --regexp '^adlock: ADLOCK_FLOCK: is for a program, and work is a function
adlock: ADLOCK_FLOCK: a file is locked only for a command: .*$'
	assert_notes <<<$'64\n64\n0'
}

# bats test_tags=core
@test "a trap may lock by itself while a command has the file" {
	script job <<-'E'
		child() { unset ADLOCK_FLOCK; adlock_with c d -- true; note "$?"; }
		trap child USR1
		adlock_with a b -- sh -c 'kill -USR1 "$PPID"; flock -n "$0" true; echo "$?" >>"$T/notes"' "$ADLOCK_FLOCK"
	E
	run launch job
	assert_success
	free
	assert_notes <<<$'1\n0'
}

# bats test_tags=once
@test "what is no file cannot be locked" {
	mkfifo "$T/pipe"
	script job <<-'E'
		for ADLOCK_FLOCK in "$T/pipe" /dev/null "$T/none/file"; do
			adlock_with a b -- echo ran || note "$?"
		done
		ADLOCK_FLOCK=$T # a directory can
		adlock_with a b -- flock -n "$T" true || note "$?"
	E
	run launch job
	assert_line --index 0 "adlock: $T/pipe: is no file and no directory: it cannot be locked"
	assert_line --index 2 "adlock: $T/none/file: no such file or directory"
	assert_notes <<<$'64\n64\n73\n1'
}

@test "a guarded script is locked beside its atom" {
	script job <<-'E'
		adlock_guard
		flock -n "$T/file" true || note "$?"
		adlock_get a b # the guard has unset ADLOCK_FLOCK
	E
	run launch job
	assert_success
	assert_notes <<<1
	holds_it
	run launch job
	assert_success
	assert_notes <<<1
	: >"$T/let-go"
	wait "$holder"
}

# kills_itself leaves a process of its session behind, and its script is left to wait for it.
kills_itself='sh -c '"'"'sh -c "echo \$\$ >\"\$T/left\"; read -r go <\"\$T/go\"" & until [ -s "$T/left" ]; do sleep 0.01; done; kill -KILL $$'"'"

# left_helper is the helper that waits for what a command has left.
left_helper() { leftovers 'left.--wait'; }
helper_waits() { [ -n "$(left_helper)" ]; }

# bats test_tags=core
@test "a file stays locked until the rest of the command is gone" {
	mkfifo "$T/go"
	script job <<-E
		adlock_with a b -- $kills_itself || :
	E
	for ADLOCK_SHARED in '' 1; do
		export ADLOCK_SHARED
		rm -f "$T/left"
		start job
		first=$!
		eventually helper_waits
		kill -TERM "$(left_helper)" # as a signal to the whole group
		eventually helper_waits
		locked
		echo go >"$T/go"
		wait "$first"
		free
	done
}
