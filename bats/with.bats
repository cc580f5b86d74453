# adlock_with: get, run, release.
load common

# bats test_tags=core
@test "adlock_with runs under the lock and returns the status" {
	job_notes $'one two\n7' <<-'E'
		work() {
			[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || return 1
			note "$1"
			return 7
		}
		adlock_with a b 0 -- work 'one two' || note "$?"
		[ ! -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
	E
}

# bats test_tags=core
@test "adlock_with takes 2 to 6 words, then -- and a command" {
	job_notes $'2\n3\n4\n5\n6\n--' <<-'E'
		ADLOCK_IF_ELAPSED=0
		adlock_with a b -- note 2
		adlock_with a b 0 -- note 3
		adlock_with a b 0 90 -- note 4
		adlock_with a b 0 90 dax -- note 5
		adlock_with a b 0 90 dax "$(date +%s)" -- note 6
		adlock_with -- -- 0 -- note --
	E
}

# bats test_tags=core
@test "calls of adlock_with nest" {
	job_notes $'inner\n0' <<-'E'
		inner() {
			[ -e "$ADLOCK_DIR/lock.job.dax.a.outer" ]
			[ -e "$ADLOCK_DIR/lock.job.dax.a.inner" ]
			note inner
		}
		outer() { adlock_with a inner -- inner; }
		adlock_with a outer -- outer
		note "$?"
	E
	run ls "$ADLOCK_DIR"
	refute_output --partial lock.job
}

@test "a function run by adlock_with may keep a lock of its own" {
	job_notes '' <<-'E'
		work() { adlock_get a mine; }
		adlock_with a b -- work
		[ ! -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
		[ -e "$ADLOCK_DIR/lock.job.dax.a.mine" ]
		adlock_release
		[ ! -e "$ADLOCK_DIR/lock.job.dax.a.mine" ]
	E
}

# bats test_tags=core
@test "a missing command returns 127 and takes no lock" {
	: >"$T/plain"
	for command in no-such-command ./none "$T/plain" "$T/"; do
		: >|"$T/notes"
		job_notes_and_prints 127 <<<"adlock_with a b -- '$command' || note \"\$?\""
		assert_output "adlock: $command: command not found, or not executable"
		refute [ -e "$ADLOCK_DIR" ]
	done
}

@test "adlock_with without a command or -- is a usage error" {
	job_notes_and_prints $'64\n64\n64\n64' <<-'E'
		adlock_with a b 15 note x || note "$?"
		adlock_with a b -- || note "$?"
		adlock_with a -- note x || note "$?"
		adlock_with a b 1 2 3 4 5 -- note x || note "$?"
	E
	refute [ -e "$ADLOCK_DIR" ]
}
