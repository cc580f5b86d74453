# ADLOCK_SLOTS: at most N atoms of one program at once.
load common

slot_script() {
	script job <<-'E'
		ADLOCK_SLOTS=2
		if adlock_get a "$1" 0; then
			: >|"$T/holds.$1"
			await "$T/go"
			adlock_release
		else
			note "$? $ADLOCK_VERDICT"
		fi
	E
}

@test "nested atoms of one owner share a slot" {
	script job <<-'E'
		ADLOCK_SLOTS=1
		adlock_get a 1
		adlock_get a 2
		adlock_get a 3
		note "$ADLOCK_VERDICT"
		adlock_release
		adlock_release
		adlock_release
	E
	run launch job
	assert_success
	assert_notes <<<acquired
	run ls "$ADLOCK_DIR"
	refute_output --partial lock.
}

@test "a slot is given back with the last atom that shares it" {
	script job <<-'E'
		ADLOCK_SLOTS=1
		inside() {
			adlock_get a inner 0
			case ${1-} in
			release) adlock_release ;;
			esac
		}
		adlock_with a outer 0 -- inside release
		adlock_with a outer 0 -- inside
		: >|"$T/alone"
		await "$T/go"
		adlock_release
		: >|"$T/free"
		await "$T/end"
	E
	script other <<-'E'
		ADLOCK_PROGRAM=job ADLOCK_SLOTS=1
		adlock_with b "$1" 0 -- : || note "$? $ADLOCK_VERDICT"
	E
	start job
	first=$!
	eventually test -e "$T/alone"
	refute held a outer
	run launch other 1
	assert_notes <<<'75 full'
	: >"$T/go"
	eventually test -e "$T/free"
	run launch other 2
	assert_success
	: >"$T/end"
	wait "$first"
	assert_notes <<<'75 full'
	run ls "$ADLOCK_DIR"
	refute_output --partial lock.
}

@test "a script killed within nested atoms leaves no slot taken" {
	script job <<-'E'
		ADLOCK_SLOTS=1
		inside() {
			adlock_get a inner 0
			: >|"$T/inside"
			hang
		}
		adlock_with a outer 0 -- inside
	E
	script other <<-'E'
		ADLOCK_PROGRAM=job ADLOCK_SLOTS=1
		adlock_get b other 0
		note "$ADLOCK_VERDICT"
		adlock_release
	E
	start job
	eventually test -e "$T/inside"
	kill_whole $!
	run launch other
	assert_success
	assert_notes <<<acquired
}

@test "the atom of a script within an atom has a slot of its own" {
	script job <<-'E'
		ADLOCK_SLOTS=1
		adlock_get a outer 0
		again child 1
		again child 2
		adlock_get a second 0 && note "$ADLOCK_VERDICT"
		adlock_release
		adlock_release
	E
	script child <<-'E'
		ADLOCK_PROGRAM=job ADLOCK_SLOTS=$1
		adlock_with a inner 0 -- note acquired || note "$? $ADLOCK_VERDICT"
	E
	run launch job
	assert_success
	assert_notes <<<$'75 full\nacquired\nacquired'
	run ls "$ADLOCK_DIR"
	refute_output --partial lock.
}

@test "the slot of a killed owner is free at once" {
	slot_script
	ADLOCK_SLOTS=1 start job 1
	eventually test -e "$T/holds.1"
	kill_whole $!
	: >"$T/go"
	sed 's/=2/=1/' "$T/job" >"$T/one"
	ADLOCK_PROGRAM=job run launch one 2
	assert_success
	assert [ -e "$T/holds.2" ]
}

@test "the parts of a job with a slot wait for the other slots" {
	script part <<-'END'
		ADLOCK_PROGRAM=job ADLOCK_SLOTS=2 ADLOCK_WAIT=forever
		adlock_with part "$1" 0 -- note "part $1"
	END
	script whole <<-'END'
		IFS=' ' ADLOCK_PROGRAM=job ADLOCK_SLOTS=2 # the shell under test may be two words
		adlock_get whole x 0
		for i in 1 2 3; do
			$ADLOCK_TEST_SHELL "$T/part" "$i" &
		done
		wait
		adlock_release
	END
	run launch whole
	assert_success
	assert_equal "$(sort "$T/notes")" $'part 1\npart 2\npart 3'
}

@test "a script takes a slot of a semaphore" {
	script job <<-'E'
		ADLOCK_PROGRAM=adlock ADLOCK_SLOTS=2
		adlock_get run pictures 0 || exit
		: >|"$T/holds.$1"
		await "$T/go"
		adlock_release
	E
	start job 1
	local first=$!
	start job 2
	eventually test -e "$T/holds.1"
	eventually test -e "$T/holds.2"
	run "$ADLOCK_BIN" run --name pictures --slots 2 --verbose -- true
	assert_failure 75
	assert_output --partial 'full: at most 2 runs of pictures at once'
	: >"$T/go"
	wait "$first"
	wait "$!"
	refute compgen -G "$ADLOCK_DIR/lock.*"
}
