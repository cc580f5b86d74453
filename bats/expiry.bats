# A newcomer ends an owner that has expired.
load common

# hung SCRIPT starts a script that holds `a b` and hangs; its pid is $hung.
hung() {
	start "$1"
	hung=$!
	eventually test -e "$T/hangs"
	eventually older 1 "$(lock_of a b)"
}

newcomer() {
	script new <<-'E'
		ADLOCK_PROGRAM=job
		if adlock_get a b 0 "${1-1s}"; then
			note "$ADLOCK_VERDICT"
			adlock_release
		else
			note "$? $ADLOCK_VERDICT"
		fi
	E
}

@test "an expired owner is ended, its job with it, and replaced" {
	script job <<-'E'
		adlock_get a b
		sleep 61 &
		setsid sh -c 'sleep 62; :' &
		hang
	E
	hung job
	newcomer
	run launch new
	assert_success
	assert_output --regexp "^adlock: a b: ended process $hung by force: it had run for [0-9ms]+, ExpireAfter is 1s$"
	assert_notes <<<acquired
	assert gone "$hung"
	run leftovers 'sleep'
	assert_output ''
	refute held a b
}

# bats test_tags=core
@test "a release while the owner is ended prints the reason" {
	# The script catches INT, the newcomer's first signal: a busy machine has two pauses for the
	# message before KILL comes.
	env --default-signal true 2>/dev/null || skip 'env(1) cannot reset INT, which a background process ignores'
	script job <<-'E'
		release() { s=0; adlock_release 2>|"$T/said" || s=$?; }
		trap 'trap "" INT TERM; release; note "$s $ADLOCK_VERDICT"; exit 3' INT
		ADLOCK_PAUSE=100ms # the release waits for the newcomer four times as long
		adlock_get a b
		hang || :
	E
	shell=(env --default-signal=INT "${shell[@]}")
	hung job
	newcomer
	ADLOCK_PAUSE=30s
	run launch new
	assert_success
	assert gone "$hung"
	run grep -hv -i 'terminated *$' "$T/job.out" "$T/said" # some shells print this about a helper
	assert_output --regexp '^adlock: a b: ended by force by process [0-9]+: it had run for [0-9ms]+, ExpireAfter is 1s$'
	run grep -cxF '75 lost' "$T/notes"
	assert_output 1
}

@test "adlock stop ends the script that holds an atom" {
	script job <<-'E'
		adlock_get a b
		sleep 61 &
		hang
	E
	hung job
	run "$ADLOCK_BIN" stop 'job a b'
	assert_success
	assert_output --regexp "^adlock: a b: ended process $hung by force, as asked: it had run for [0-9ms]+$"
	assert gone "$hung"
	run leftovers 'sleep'
	assert_output ''
	refute held a b
	run "$ADLOCK_BIN" stop 'job a b'
	assert_success
	assert_output 'adlock: job a b: is not locked by any running job: nothing to stop'
}

# bats test_tags=core
@test "the hook is called for a failed run" {
	script job <<-'E'
		ADLOCK_HOOK='echo "$ADLOCK_EVENT $ADLOCK_ATOM $ADLOCK_TEXT" >>"$T/told"'
		adlock_get a b
		adlock_release 0
		adlock_get a b
		adlock_release 5 || :
		note "$(env | grep -c ^ADLOCK_HOOK)"
	E
	run launch job
	assert_output ''
	eventually test -s "$T/told"
	run cat "$T/told"
	assert_output 'fail job.dax.a.b a b: failed with status 5'
	assert_notes <<<0
}

@test "ending an owner stamps the last lock" {
	script job <<-'E'
		adlock_get a b
		hang
	E
	hung job
	script new <<-'E'
		ADLOCK_PROGRAM=job
		adlock_get a b 0 1s
		[ "$(stat -c %Y "$ADLOCK_DIR/last.job.dax.a.b")" -gt 0 ]
	E
	run launch new
	assert_success
}

@test "an owner younger than ExpireAfter gets no signal: busy" {
	script job <<-'E'
		adlock_get a b
		hang
	E
	hung job
	newcomer
	run launch new 1h
	assert_success
	assert_notes <<<'75 busy'
	refute gone "$hung"
}

@test "only an explicit limit shortens the owner's own" {
	script job <<-'E'
		adlock_get a b 0 3h
		hang
	E
	start job
	hung=$!
	eventually test -e "$T/hangs"
	script new <<-'E'
		ADLOCK_PROGRAM=job
		in_150_minutes=$(($(date +%s) + 9000))
		adlock_get a b 0 '' '' "$in_150_minutes" || note "$ADLOCK_VERDICT"
		adlock_get a b 0 2h '' "$in_150_minutes"
		note "$ADLOCK_VERDICT"
	E
	run launch new
	assert_success
	assert_notes <<<$'busy\nacquired'
	assert gone "$hung"
}

@test "a child that asks for its parent's atom gets busy" {
	script job <<-'E'
		adlock_get a b 0
		again new 0
		adlock_release
	E
	newcomer
	run launch job
	assert_success
	assert_notes <<<'75 busy'
}

@test "two newcomers at one expired owner: one takes over" {
	script job <<-'E'
		adlock_get a b
		hang
	E
	start job
	hung=$!
	eventually test -e "$T/hangs"
	backdate "$(lock_of a b)" 2h0s
	script new <<-'E'
		ADLOCK_PROGRAM=job
		if adlock_get a b 0 1h; then # with a shorter limit the first newcomer might expire too
			note "$ADLOCK_VERDICT"
			await "$T/go"
			adlock_release
		else
			note "$ADLOCK_VERDICT"
			: >|"$T/go"
		fi
	E
	start new
	first=$!
	start new
	second=$!
	wait "$first" "$second"
	run sort "$T/notes"
	assert_output $'acquired\nbusy'
	assert gone "$hung"
}

@test "an expired owner that cannot be checked is stuck: 77" {
	script job <<-'E'
		adlock_get a b
		hang
	E
	hung job
	content=$(sed 's/^pidns=.*/pidns=1/' "$(lock_of a b)")
	printf '%s\n' "$content" >|"$(lock_of a b)"
	newcomer
	run launch new
	assert_success
	assert_output --partial 'stuck'
	assert_notes <<<'77 stuck'
	refute gone "$hung"
	assert held a b
}
