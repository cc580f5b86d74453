# adlock_age: minutes since the atom last completed.
load common

# bats test_tags=core
@test "adlock_age prints whole minutes, rounded down" {
	script job <<-'E'
		adlock_get a b
		adlock_release
		adlock_age a b
		touch -d '-151 seconds' "$ADLOCK_DIR/last.job.dax.a.b"
		adlock_age a b
		touch -d '-3 days' "$ADLOCK_DIR/last.job.dax.a.b"
		adlock_age a b dax
		adlock_age a b 2>/dev/null >/dev/full || echo "$?"
	E
	expect 0 $'0\n2\n4320\n74' launch job
}

# A wrong answer of "never" would start the script's work.
@test "adlock_age fails in a directory that it cannot read" {
	unprivileged
	script job <<-'E'
		adlock_age a b
		mkdir -m 700 "$ADLOCK_DIR" "$ADLOCK_DIR/in"
		chmod 0 "$ADLOCK_DIR"
		adlock_age a b || echo "$?"
		ADLOCK_DIR=$ADLOCK_DIR/in/deep
		adlock_age a b || echo "$?"
		ADLOCK_DIR=$T/job
		adlock_age a b || echo "$?"
	E
	export ADLOCK_DIR=$T/locks
	run --separate-stderr launch job
	assert_output $'never\n77\n77\n73'
	assert_equal "$stderr" "adlock: $T/locks/last.job.dax.a.b: permission denied
adlock: $T/locks/in/deep/last.job.dax.a.b: permission denied
adlock: $T/job/last.job.dax.a.b: not a directory"
}
