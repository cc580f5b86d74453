# `adlock run --name NAME` and a script reach the same lock.
load common

named() {
	script job <<-'E'
		ADLOCK_PROGRAM=adlock
		adlock_get run nightly 0 || exit
		: >|"$T/holds"
		await "$T/go"
		adlock_release
	E
}

@test "a script that holds a name excludes adlock run --name" {
	named
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

@test "adlock run --name excludes a script" {
	named
	"$ADLOCK_BIN" run --name nightly -- sleep 60 3>&- &
	runner=$!
	eventually test -e "$ADLOCK_DIR/lock.adlock.dax.run.nightly"
	run launch job
	assert_failure 75
	kill "$runner"
	wait "$runner" || true
	: >"$T/go"
	launch job
}
