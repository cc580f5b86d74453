# A denial is status 75 and a verdict, without output.
load common

# bats test_tags=core
@test "an unchecked denial under set -e ends the script with 75" {
	script job <<-'E'
		adlock_get a b
		adlock_release
		adlock_get a b 1
		note 'not reached'
	E
	expect 75 '' launch job
	assert_notes </dev/null
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

@test "adlock_get and adlock_with have no default interval" {
	job_notes $'with\nwith again' <<-'E'
		adlock_get a b
		adlock_release
		adlock_get a b
		adlock_release
		adlock_with a b -- note with
		adlock_with a b '' -- note 'with again'
	E
}

@test "ADLOCK_IF_ELAPSED replaces a missing or empty argument" {
	job_notes too-soon <<-'E'
		ADLOCK_IF_ELAPSED=0
		adlock_get a b
		adlock_release
		adlock_get a b ''
		adlock_release
		adlock_get a b 1 || note "$ADLOCK_VERDICT"
	E
}

# kept_out OWNER WORDS: the last message says so of WORDS, of a start within the job of OWNER.
kept_out() {
	assert_line --regexp "^adlock: $2: not run: busy: the atom is running this very program; it was started from within the job of process $1$"
	assert grep -q "event=not-run .*pid=[0-9]* owner=$1 .*verdict=busy .*status=75 reason=\"busy: .*job of process $1\"" "$ADLOCK_DIR/program.dax.runlog"
}

@test "a start denied by its own job is reported to log and hook" {
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
	assert_line 75
	local owner=${lines[-1]#owner }
	kept_out "$owner" 'a b'
	assert grep -q 'its own job had the lock' <("$ADLOCK_BIN" status)
	assert_line "adlock: a b: not run: busy: the atom is running this very program; process $owner, which asks for it, has the lock itself"
	assert_notes <<<'75 busy'
	eventually grep -qx "not-run $owner" "$T/told"
}

# bats test_tags=once
@test "adlock run within its own job is reported despite -E" {
	for options in '-E 0' '-E 0 --wait forever' '--shared'; do
		run "$ADLOCK_BIN" run --name x -- sh -c "\"$ADLOCK_BIN\" run --name x $options -- echo ran; echo \"\$?\"; echo \"owner \$PPID\""
		assert_success
		refute_line ran
		assert_line 75
		kept_out "${lines[-1]#owner }" 'run x'
	done
}
