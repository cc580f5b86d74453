# A lock whose owner is dead is reclaimed at once.
load common

@test "the next start takes a killed script's atom at once" {
	script job <<-'E'
		adlock_get a b
		: >|"$T/holds"
		await "$T/never"
	E
	start_to holds job
	owner=$!
	kill_whole "$owner"
	script again <<-'E'
		ADLOCK_PROGRAM=job
		adlock_get a b 0 2h
		note "$ADLOCK_VERDICT"
		adlock_release
	E
	quietly again
	assert_notes <<<acquired
}

@test "the next run reclaims the lock of a script that exited" {
	script job <<-'E'
		adlock_get a b 0
		note "$ADLOCK_VERDICT"
	E
	launch job
	assert held a b
	launch job
	assert_notes <<<$'acquired\nacquired'
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
