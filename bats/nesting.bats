# Locks nest, and belong to the process that took them.
load common

# bats test_tags=core
@test "a subshell cannot release what its parent holds" {
	job_notes_and_prints $'too-soon\n64\n64\nheld\nreleased' <<-'E'
		adlock_get a b
		adlock_release
		adlock_get a b 0
		(
			adlock_get a b 1h || note "$ADLOCK_VERDICT"
			ADLOCK_WAIT=5 # without a unit
			adlock_get a b 0 || note "$?"
			adlock_release || note "$?"
			:
		)
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note held
		adlock_release
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note released
	E
	assert_output --regexp 'held by process [0-9]+, not by this one'
}

# bats test_tags=core
@test "a subshell takes and releases a lock of its own" {
	job_notes $'inner\nacquired' <<-'E'
		adlock_get a outer
		(
			adlock_get a inner
			[ -e "$ADLOCK_DIR/lock.job.dax.a.inner" ]
			adlock_release
			[ ! -e "$ADLOCK_DIR/lock.job.dax.a.inner" ]
			note inner
		)
		adlock_release
		note "$ADLOCK_VERDICT"
	E
}

# bats test_tags=core
@test "a subshell's lock is reclaimed when the subshell is gone" {
	script job <<-'E'
		(
			adlock_get a b 0
			note "$ADLOCK_VERDICT"
			:
		)
		adlock_get a b 0 || :
		note "$ADLOCK_VERDICT"
	E
	launch job
	case ${shell[0]} in
	ksh93) assert_notes <<<$'acquired\nbusy' ;;
	*) assert_notes <<<$'acquired\nacquired' ;;
	esac
}

# bats test_tags=core
@test "a child script has none of its parent's locks" {
	script job <<-'E'
		set -a
		adlock_get a outer
		again child
		adlock_release
	E
	script child <<-'E'
		adlock_release
		note "child $?"
		adlock_get a inner
		adlock_release
	E
	quietly job
	assert_notes <<<'child 0'
	refute held a outer
}
