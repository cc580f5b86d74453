# Limits that are `auto`, and denials that are news.
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

@test "an owner idle past its learned limit is ended" {
	script job <<-'E'
		adlock_get a b 0 auto
		note "$ADLOCK_VERDICT"
		[ -e "$T/hangs" ] || hang
		adlock_release
	E
	mkdir -m 700 "$ADLOCK_DIR"
	printf 'learn.%s\n' runs=100 mean=5.193 deviation=0.1 longest=5.3 >"$(last_of a b)"
	touch -d @0 "$(last_of a b)"
	start job
	local hung=$!
	eventually 20 test -e "$T/hangs"
	backdate "$(lock_of a b)" 15m0s
	run launch job
	assert_success
	eventually 20 gone "$hung"
	assert_notes <<-'E'
		acquired
		acquired
	E
	run grep -c -e learn.runs=101 -e learn.doubled=1 "$(last_of a b)"
	assert_output 2
}

@test "an atom that finds no slot says so, and not each time" {
	script job <<-'E'
		ADLOCK_SLOTS=1
		adlock_get a c
		: >"$T/holds"
		await "$T/go"
		adlock_release
	E
	start job
	local holder=$!
	eventually 20 test -e "$T/holds"
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
