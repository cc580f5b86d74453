# At most N atoms of one program at once.
load common

slot_script() {
	script job <<-'E'
		ADLOCK_SLOTS=2
		if adlock_get a "$1" 0; then
			: >|"$T/holds.$1"
			await "$T/go"
			adlock_release
		else
			note "$? $ADLOCK_VERDICT"
		fi
	E
}

@test "over the number of slots: full, silently" {
	slot_script
	start job 1
	first=$!
	start job 2
	second=$!
	eventually 20 test -e "$T/holds.1"
	eventually 20 test -e "$T/holds.2"
	run launch job 3
	assert_success
	assert_output ''
	assert_notes <<<'75 full'
	: >"$T/go"
	wait "$first" "$second"
	run launch job 3
	assert_success
	assert [ -e "$T/holds.3" ]
}

@test "nested atoms of one owner share a slot" {
	script job <<-'E'
		ADLOCK_SLOTS=1
		adlock_get a 1
		adlock_get a 2
		adlock_get a 3
		note "$ADLOCK_VERDICT"
		adlock_release
		adlock_release
		adlock_release
	E
	run launch job
	assert_success
	assert_notes <<<acquired
	run ls "$ADLOCK_DIR"
	refute_output --partial lock.
}

@test "the slot of a killed owner is free at once" {
	slot_script
	ADLOCK_SLOTS=1 start job 1
	eventually 20 test -e "$T/holds.1"
	kill -KILL $!
	eventually 20 gone $!
	: >"$T/go"
	sed 's/=2/=1/' "$T/job" >"$T/one"
	ADLOCK_PROGRAM=job run launch one 2
	assert_success
	assert [ -e "$T/holds.2" ]
}
