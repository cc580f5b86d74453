# Waiting for a busy atom.
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

waiter() {
	script waits <<-'E'
		ADLOCK_PROGRAM=job
		: >|"$T/waits"
		if adlock_get a b 0; then
			note "$ADLOCK_VERDICT"
			adlock_release
		else
			note "$? $ADLOCK_VERDICT"
		fi
	E
}

@test "a waiter takes a busy atom when it is released" {
	holder
	waiter
	ADLOCK_WAIT=1m start waits
	waits=$!
	eventually test -e "$T/waits"
	: >"$T/go"
	wait "$holder" "$waits"
	assert_notes <<<acquired
}

@test "a waiter takes a busy atom when its owner dies" {
	holder
	waiter
	ADLOCK_WAIT=1m start waits
	waits=$!
	eventually test -e "$T/waits"
	kill -KILL "$holder"
	wait "$waits"
	assert_notes <<<acquired
}

@test "status shows a script as waiting while it waits" {
	holder
	waiter
	ADLOCK_WAIT=1m start waits
	waits=$!
	eventually grep -qs ' event=wait ' "$ADLOCK_DIR"/program.dax.runlog
	run "$ADLOCK_BIN" status job a b
	assert_output --regexp 'job a b +running .*waiting for process [0-9]+: pid [0-9]+ for [^ ]+ of 1m$'
	: >"$T/go"
	wait "$holder" "$waits"
	run "$ADLOCK_BIN" status 'job a b'
	assert_output --regexp 'job a b +idle '
	refute_output --partial waiting
}

@test "a wait ends as busy, and not too early" {
	holder
	waiter
	begun=$(date +%s)
	ADLOCK_WAIT=2s run launch waits
	assert_success
	assert [ "$(($(date +%s) - begun))" -ge 1 ]
	assert_notes <<<'75 busy'
}

@test "an owner that expires during a wait is ended" {
	script job <<-'E'
		adlock_get a b 0
		hang
	E
	start job
	hung=$!
	eventually test -e "$T/hangs"
	waiter
	ADLOCK_WAIT=1m ADLOCK_EXPIRE_AFTER=2s run launch waits
	assert_success
	assert_notes <<<acquired
	assert gone "$hung"
}

@test "a newcomer waits for too soon only if asked to" {
	script job <<-'E'
		ADLOCK_WAIT=1m
		adlock_get a b
		adlock_release
		adlock_get a b 1h || note "$? $ADLOCK_VERDICT"
		ADLOCK_WAIT_ELAPSED=1
		touch -d '-3598 seconds' "$ADLOCK_DIR/last.job.dax.a.b"
		adlock_get a b 1h
		note "$ADLOCK_VERDICT"
		adlock_release
	E
	run launch job
	assert_success
	assert_notes <<<$'75 too-soon\nacquired'
}
