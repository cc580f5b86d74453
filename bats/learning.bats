# Limits that are `auto`.
load common

@test "auto is an argument or a variable, and success teaches" {
	job_notes $'1\n75 too-soon' <<-'E'
		adlock_get a b 0 auto
		adlock_release
		ADLOCK_EXPIRE_AFTER=auto
		adlock_with a b 0 -- true
		adlock_with a b 0 -- false || note "$?"
		adlock_get a b auto || note "$? $ADLOCK_VERDICT"
	E
	expect 0 'learn.runs=2' grep learn.runs "$(last_of a b)"
}
