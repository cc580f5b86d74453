# The pass: one clock for a whole run.
load common

@test "a pass judges the age of a lock by when the pass began" {
	script job <<-'E'
		adlock_get hang "$1"
		hang "hangs.$1"
	E
	start_to hangs.B job B
	second=$!
	script new <<-'E'
		ADLOCK_PROGRAM=job
		[ "$1" = now ] || adlock_pass
		: >>"$T/begun"
		await "$T/later"
		if adlock_get hang B 0 1h; then
			note "$1 $ADLOCK_VERDICT"
			adlock_release
		else
			note "$1 $ADLOCK_VERDICT"
		fi
	E
	start_to begun new pass
	pass=$!
	backdate "$(lock_of hang B)" 2h0s # by the clock of the pass the lock is new
	: >"$T/later"
	wait "$pass"
	refute gone "$second"
	launch new now
	assert gone "$second"
	assert_notes <<<$'pass busy\nnow acquired'
}

@test "the last argument of adlock_get replaces the clock" {
	job_notes acquired <<-'E'
		adlock_get a b 1s
		adlock_release
		adlock_get a b 1h '' '' "$(($(date +%s) + 7200))"
		note "$ADLOCK_VERDICT"
		adlock_release
	E
}

# bats test_tags=core
@test "a pass ends with its script: a child has its own clock" {
	script job <<-'E'
		set -a
		adlock_pass
		_adlock_pass=1000000000
		again child
	E
	script child <<-'E'
		adlock_get a b 1s
		adlock_release
		touch -d '-30 seconds' "$ADLOCK_DIR/last.child.dax.a.b"
		adlock_get a b 1s
		note "$ADLOCK_VERDICT"
	E
	launch job
	assert_notes <<<acquired
}
