# Waiting for a busy atom.
load common

# waits starts a newcomer that waits; its pid is $waits.
waits() {
	newcomer
	ADLOCK_WAIT=1m start_to waits new
	waits=$!
}

@test "a waiter takes a busy atom when it is released" {
	holder
	waits
	: >"$T/go"
	wait "$holder" "$waits"
	assert_notes <<<acquired
}

@test "status shows a script as waiting while it waits" {
	holder
	waits
	eventually grep -qs ' event=wait ' "$ADLOCK_DIR"/program.dax.runlog
	run "$ADLOCK_BIN" status job a b
	assert_output --regexp 'job a b +running .*waiting for process [0-9]+: pid [0-9]+ for [^ ]+ of 1m$'
	: >"$T/go"
	wait "$holder" "$waits"
	run "$ADLOCK_BIN" status 'job a b'
	assert_output --regexp 'job a b +idle '
	refute_output --partial waiting
}
