# A denial is status 75 and a verdict, without output.
load common

holder() {
	script job <<-'E'
		adlock_get a b 0
		: >|"$T/holds"
		await "$T/go"
		adlock_release
	E
	start job
	holder=$!
	eventually test -e "$T/holds"
}

tells() {
	script asks <<-'E'
		ADLOCK_PROGRAM=job
		adlock_get a b ${1-} || note "$? $ADLOCK_VERDICT"
	E
}

@test "an atom that another process holds is busy" {
	holder
	tells
	run launch asks 0
	assert_success
	assert_output ''
	assert_notes <<<'75 busy'
	: >"$T/go"
	wait "$holder"
}

# bats test_tags=core
@test "an atom is too soon after its last completion" {
	script job <<-'E'
		adlock_get a b
		adlock_release
		adlock_get a b 1 || note "$? $ADLOCK_VERDICT"
		adlock_get a b 0 && note "$ADLOCK_VERDICT"
		adlock_release
	E
	run launch job
	assert_success
	assert_output ''
	assert_notes <<-'E'
		75 too-soon
		acquired
	E
}

@test "milliseconds and fractions are durations in a script too" {
	script job <<-'E'
		adlock_get a b
		adlock_release
		adlock_get a b 1.5h || note "$? $ADLOCK_VERDICT"
		adlock_get a b 0.5 2.5d || note "$? $ADLOCK_VERDICT"
		sleep 0.1
		adlock_get a b 1ms 1h500ms && note "$ADLOCK_VERDICT"
		adlock_release
	E
	run launch job
	assert_success
	assert_output ''
	assert_notes <<-'E'
		75 too-soon
		75 too-soon
		acquired
	E
}

# bats test_tags=core
@test "under set -e an unchecked denial ends the script with 75" {
	script job <<-'E'
		adlock_get a b
		adlock_release
		adlock_get a b 1
		note 'not reached'
	E
	run launch job
	assert_failure 75
	assert_output ''
	assert_notes </dev/null
}

@test "ADLOCK_VERBOSE prints a denial in one line" {
	script job <<-'E'
		adlock_get a b
		adlock_release
		ADLOCK_VERBOSE=1
		adlock_get a b 1 || exit
	E
	run launch job
	assert_failure 75
	assert_line --partial 'adlock: a b: too soon'
	assert_equal "${#lines[@]}" 1
}

@test "a denial is printed on a terminal" {
	command -v script >/dev/null || skip 'no script(1)'
	script job <<-'E'
		adlock_get a b
		adlock_release
		adlock_get a b 1 || exit
	E
	run command script -qec "${shell[*]} '$T/job'" /dev/null </dev/null
	assert_output --partial 'adlock: a b: too soon'
}

@test "no function has an interval by default" {
	script job <<-'E'
		adlock_get a b
		adlock_release
		adlock_get a b
		adlock_release
		adlock_with a b -- note with
		adlock_with a b '' -- note 'with again'
	E
	run launch job
	assert_success
	assert_output ''
	assert_notes <<<$'with\nwith again'
}

@test "settings replace arguments that are missing or empty" {
	script job <<-'E'
		ADLOCK_IF_ELAPSED=0
		adlock_get a b
		adlock_release
		adlock_get a b ''
		adlock_release
		adlock_get a b 1 || note "$ADLOCK_VERDICT"
	E
	run launch job
	assert_success
	assert_notes <<<too-soon
}

@test "with ADLOCK_FROM_START IfElapsed counts from the start" {
	script job <<-'E'
		ADLOCK_FROM_START=1
		adlock_get a b 3s
		sleep 3
		adlock_release
		adlock_get a b 3s
		adlock_release
	E
	run launch job
	assert_success
}

# kept_out OWNER WORDS: the last message says so of WORDS, of a start within the job of OWNER.
kept_out() {
	assert_line --regexp "^adlock: $2: not run: busy: the atom is running this very program; it was started from within the job of process $1$"
	assert grep -q "event=not-run .*pid=[0-9]* owner=$1 .*verdict=busy .*status=75 reason=\"busy: .*job of process $1\"" "$ADLOCK_DIR/program.dax.runlog"
}

@test "a start that its own job keeps out is told, logged and hooked" {
	script inner <<-'E'
		ADLOCK_PROGRAM=job ADLOCK_WAIT=forever
		adlock_with a b -- echo ran || echo "$?"
	E
	script job <<-'E'
		adlock_get a b 0
		adlock_get a b 0 || note "$? $ADLOCK_VERDICT"
		again inner
		echo "owner $$"
	E
	ADLOCK_HOOK='echo "$ADLOCK_EVENT $ADLOCK_OWNER" >>"$T/told"' run launch job
	assert_success
	refute_line ran
	assert_line 75
	local owner=${lines[-1]#owner }
	kept_out "$owner" 'a b'
	assert_notes <<<'75 busy'
	eventually grep -qx "not-run $owner" "$T/told"
}

# bats test_tags=once
@test "adlock run within its own job is told, whatever -E says" {
	for options in '-E 0' '-E 0 --wait forever' '--shared'; do
		run "$ADLOCK_BIN" run --name x -- sh -c "\"$ADLOCK_BIN\" run --name x $options -- echo ran; echo \"\$?\"; echo \"owner \$PPID\""
		assert_success
		refute_line ran
		assert_line 75
		kept_out "${lines[-1]#owner }" 'run x'
	done
}

# bats test_tags=once
@test "a program's only slot is kept from its own job, aloud" {
	run "$ADLOCK_BIN" run --program p --slots 1 --name x -- "$ADLOCK_BIN" run --program p --slots 1 --name y -- echo ran
	assert_failure 75
	assert_output --regexp '^adlock: run y: not run: full: an atom of [a-z]+ is running; it was started from within the job of process [0-9]+$'
	"$ADLOCK_BIN" run --program p --slots 2 --name z -- true
	run "$ADLOCK_BIN" run --program p --slots 2 --name x -- "$ADLOCK_BIN" run --program p --slots 2 --name y -- echo ran
	assert_output ran
}
