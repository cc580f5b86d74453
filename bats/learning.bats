# Limits that are `auto`, and denials that are reported.
load common

@test "auto is an argument or a variable, and success teaches" {
	script job <<-'E'
		adlock_get a b 0 auto
		adlock_release
		ADLOCK_EXPIRE_AFTER=auto
		adlock_with a b 0 -- true
		adlock_with a b 0 -- false || note "$?"
		adlock_get a b auto || note "$? $ADLOCK_VERDICT"
	E
	run launch job
	assert_success
	assert_output ''
	assert_notes <<-'E'
		1
		75 too-soon
	E
	run grep learn.runs "$(last_of a b)"
	assert_output 'learn.runs=2'
}

@test "denials for slots are reported, but not each time" {
	script job <<-'E'
		ADLOCK_SLOTS=1
		adlock_get a c
		: >"$T/holds"
		await "$T/go"
		adlock_release
	E
	start job
	local holder=$!
	eventually test -e "$T/holds"
	script asks <<-'E'
		ADLOCK_PROGRAM=job ADLOCK_STARVING=2 ADLOCK_SLOTS=1
		for asked in 1 2 3 4; do
			adlock_get a b || note "$?"
		done
	E
	run launch asks
	assert_output --regexp '^adlock: a b: starving: denied 2 times in a row; full: an atom of job is running; let it wait .*'
	assert_equal "${#lines[@]}" 1
	: >"$T/go"
	wait "$holder"
}
