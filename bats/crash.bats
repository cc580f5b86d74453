# What is left behind is reclaimed at once.
load common

@test "the next start takes a killed script's atom at once" {
	script job <<-'E'
		adlock_get a b
		: >|"$T/holds"
		await "$T/never"
	E
	start job
	owner=$!
	eventually 20 test -e "$T/holds"
	kill -KILL "$owner"
	eventually 20 gone "$owner"
	script again <<-'E'
		ADLOCK_PROGRAM=job
		adlock_get a b 0 2h
		note "$ADLOCK_VERDICT"
		adlock_release
	E
	run launch again
	assert_success
	assert_output ''
	assert_notes <<<acquired
}

@test "a script that exits without a release" {
	script job <<-'E'
		adlock_get a b 0
		note "$ADLOCK_VERDICT"
	E
	launch job
	assert held a b
	run launch job
	assert_success
	assert_notes <<<$'acquired\nacquired'
}

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
	run launch job
	assert_success
	case ${shell[0]} in
	ksh93) assert_notes <<<$'acquired\nbusy' ;;
	*) assert_notes <<<$'acquired\nacquired' ;;
	esac
}

@test "25 starts two at a time: exactly one of each two runs" {
	script job <<-'E'
		pair=0
		await "$T/start"
		while [ "$pair" -lt 25 ]; do
			pair=$((pair + 1))
			: >|"$T/$1.$pair"
			await "$T/a.$pair"
			await "$T/b.$pair"
			if adlock_get race "$pair" never; then
				note "$pair"
				adlock_release
			fi
		done
	E
	start job a
	first=$!
	start job b
	second=$!
	: >"$T/start"
	wait "$first" "$second"
	run sort -n "$T/notes"
	assert_output "$(seq 25)"
}
