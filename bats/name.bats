# `adlock run --name NAME` and a script reach the same lock.
load common

@test "a script that holds a name excludes adlock run --name" {
	script job <<-'E'
		ADLOCK_PROGRAM=adlock
		adlock_get run nightly 0 || exit
		: >|"$T/holds"
		await "$T/go"
		adlock_release
	E
	start_to holds job
	script=$!
	cd /
	run "$ADLOCK_BIN" run --name nightly -- touch "$T/ran"
	assert_failure 75
	: >"$T/go"
	wait "$script"
	run "$ADLOCK_BIN" run --name nightly -- touch "$T/ran"
	assert_success
}
