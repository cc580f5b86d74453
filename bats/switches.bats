#!/usr/bin/env bats
# A switch has the same meaning for a script and for `adlock run`, in every spelling.

load common

switches='WAIT_ELAPSED FROM_START SHARED VERBOSE RETRY_FAILED'

@test "a release with an invalid switch changes nothing" {
	job_notes_and_prints 'status 64' <<-'E'
		adlock_get a b
		ADLOCK_RETRY_FAILED=maybe
		adlock_release 1 || note "status $?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
		ADLOCK_RETRY_FAILED=no
		adlock_release 1
		[ ! -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
	E
	assert_output 'adlock: ADLOCK_RETRY_FAILED: "maybe": want 1 or 0'
}

@test "scripts and adlock run read switches alike" {
	local switch word ours
	export ADLOCK_WAIT=1s # ADLOCK_WAIT_ELAPSED needs it
	script job <<-'E'
		eval "ADLOCK_$1=\$2"
		adlock_get a b 0 || exit
		adlock_release
	E
	for switch in $switches; do
		for word in 1 yes true 0 no false '' maybe 2 on off y n TRUE Yes 00 01 ' 1' '1 '; do
			run launch job "$switch" "$word"
			ours="$status $output"
			run env "ADLOCK_$switch=$word" "$ADLOCK_BIN" run --dry-run --name other true
			[ "$status" -eq 64 ] || output=''
			assert_equal "$ours" "$status $output"
		done
	done
}

@test "ADLOCK_ONCE_PER of a script is refused unless 0 or empty" {
	local period
	script job <<-'E'
		eval "ADLOCK_ONCE_PER=\$1"
		adlock_get a b 0 || exit
		note taken
		adlock_release
	E
	expect 64 'adlock: ADLOCK_ONCE_PER: is for adlock run: a lock that a script takes by itself counts no ticks (unset it)' \
		launch job 1m
	refute held a b
	assert_notes </dev/null
	for period in 0 ''; do
		quietly job "$period"
	done
}
