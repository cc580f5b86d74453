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
@test "adlock_with locks the flock file; a trap may get a lock" {
	job_notes $'1\n0\n7 acquired' <<-'E'
		child() { unset ADLOCK_FLOCK; adlock_with c d -- true; note "$?"; }
		trap child USR1
		adlock_with a b -- sh -c 'kill -USR1 "$PPID"; flock -n "$0" true; echo "$?" >>"$T/notes"; exit 7' "$ADLOCK_FLOCK" || note "$? $ADLOCK_VERDICT"
	E
	free
}

# bats test_tags=core
@test "a flock file that another program locks denies the atom" {
	holds_it
	script job <<<'adlock_with a b -- echo ran || note "$? $ADLOCK_VERDICT"'
	quietly job
	assert_notes <<<'75 busy'
	refute [ -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
	: >"$T/let-go"
	wait "$holder"
}

# bats test_tags=core
@test "a child of an exited command keeps no flock file locked" {
	job_notes '' <<-'E'
		adlock_with a b -- sh -c 'sleep 60 >/dev/null 2>&1 & echo $! >"$T/left"'
	E
	free
	kill "$(cat "$T/left")"
}

# bats test_tags=core
@test "the command keeps the flock file if its script is killed" {
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
@test "ADLOCK_FLOCK is refused for a function and for adlock_get" {
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

@test "a guarded script locks the flock file beside its atom" {
	job_notes 1 <<-'E'
		adlock_guard
		flock -n "$T/file" true || note "$?"
		adlock_get a b # the guard has unset ADLOCK_FLOCK
	E
	holds_it
	launch job
	assert_notes <<<1
	: >"$T/let-go"
	wait "$holder"
}

# left_helper is the helper that waits for what a command has left.
left_helper() { leftovers 'left.--wait'; }
helper_waits() { [ -n "$(left_helper)" ]; }

# bats test_tags=core
@test "a child of a killed command keeps the flock file locked" {
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
		run ls "$ADLOCK_DIR"
		assert_line --regexp '^(lock|read)\.job\.dax\.a\.b'
		echo go >"$T/go"
		wait "$first"
		free
	done
}
