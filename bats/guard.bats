# adlock_guard: the one line that a legacy script needs.
load common

# guarded writes a script that has no settings but its own.
guarded() {
	{
		# shellcheck disable=SC2016 # for the script to expand
		echo '. "$ADLOCK_SH" || exit 69; adlock_guard'
		cat
	} >"$T/job"
}

waits_in_it() {
	guarded <<-'E'
		: >"$T/in"
		until [ -e "$T/go" ]; do sleep 0.05; done
		exit 3
	E
	start job
	first=$!
	eventually 20 test -e "$T/in"
}

# ended PID STATUS: the script ended so.
ended() {
	local status=0
	wait "$1" || status=$?
	assert_equal "$status" "$2"
}

@test "a second start exits 0, silently, before the script's first command" {
	waits_in_it
	rm "$T/in"
	run launch job
	assert_success
	assert_output ''
	refute [ -e "$T/in" ]
	: >"$T/go"
	ended "$first" 3
}

@test "the end of the script releases the lock, and keeps the status" {
	guarded <<<'exit 3'
	run launch job
	assert_failure 3
	assert_output ''
	refute held run script
	assert [ -e "$(last_of run script)" ]
	run launch job
	assert_failure 3
}

@test "under set -e a failing command ends the script with its status" {
	guarded <<<$'set -e\nfalse\necho not reached'
	run launch job
	assert_failure 1
	assert_output ''
	refute held run script
}

@test "TERM and HUP end the script and release the lock" {
	for signal in TERM HUP; do
		expected=143
		[ "$signal" = TERM ] || expected=129
		rm -f "$T/in"
		waits_in_it
		kill "-$signal" "$first"
		ended "$first" "$expected"
		refute held run script
	done
}

@test "a hangup that nohup ignores stays ignored" {
	guarded <<<$'kill -HUP $$\necho survived'
	run env nohup "${shell[@]}" "$T/job" </dev/null 3>&-
	assert_success
	assert_output --partial survived
	refute held run script
}

@test "it refuses where the script has a trap of its own, whichever it is" {
	for signal in EXIT INT TERM HUP; do
		printf '%s\n' "trap ': two
		lines' $signal" '. "$ADLOCK_SH" || exit 69; adlock_guard' 'echo not reached' >"$T/job"
		run launch job
		assert_failure 64
		assert_output "adlock: adlock_guard: a trap on ${lines[0]##*trap on }" ||
			assert_output --partial 'is set already'
		refute held run script
	done
	run ls -A "$ADLOCK_DIR"
	refute_output --partial traps
}

@test "traps on other signals, and ignored ones, are no obstacle and stay" {
	printf '%s\n' "trap 'echo usr' USR1; trap '' HUP" '. "$ADLOCK_SH" || exit 69; adlock_guard' \
		'kill -HUP $$; kill -USR1 $$; echo end' >"$T/job"
	run launch job
	assert_success
	assert_output $'usr\nend'
}

@test "a script that sets EXIT later releases the lock itself" {
	guarded <<<$'trap \'adlock_release; echo mine\' EXIT\nexit 5'
	run launch job
	assert_failure 5
	assert_output mine
	refute held run script
}

@test "a missing helper ends the script with 69" {
	guarded <<<'echo not reached'
	ADLOCK_BIN=/nonexistent run launch job
	assert_failure 69
	assert_output 'adlock: /nonexistent: helper not found: nothing is locked'
}

@test "a script that hangs is ended and replaced" {
	guarded <<<$'[ -e "$T/hangs" ] && { echo second; exit 0; }\n: >"$T/hangs"\nsleep 60'
	start job
	hung=$!
	eventually 20 test -e "$T/hangs"
	eventually 20 older 1 "$(lock_of run script)"
	ADLOCK_EXPIRE_AFTER=1s run launch job
	assert_success
	assert_output second
	assert gone "$hung"
	run leftovers sleep
	assert_output ''
}

@test "what a killed guard leaves behind has a name that is swept" {
	script job <<-'E'
		rm() { note "${2##*/}"; }
		adlock_guard
	E
	launch job
	run cat "$T/notes"
	assert_output --regexp '^temp\.[0-9a-f]{32}$'
}
