#!/usr/bin/env bats
# Many readers or one writer, in a lock directory.

load common

# bats test_tags=core
@test "readers hold an atom together, and a writer alone" {
	script reader <<-'END'
		ADLOCK_PROGRAM=job ADLOCK_SHARED=1
		adlock_get copy nightly 0
		: >"$T/$1"
		await "$T/go"
		adlock_release
	END
	script writer <<-'END'
		ADLOCK_PROGRAM=job
		adlock_get copy nightly 0 || note "$ADLOCK_VERDICT"
		: >"$T/go"
		ADLOCK_WAIT=1m
		adlock_get copy nightly 0
		note "$ADLOCK_VERDICT"
		adlock_release
	END
	start reader one
	start_to one reader two
	eventually test -e "$T/two"
	quietly writer
	assert_notes <<-'END'
		busy
		acquired
	END
}
