# ADLOCK_SLOTS: at most N atoms of one program at once.
load common

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
	start_to alone job
	first=$!
	refute held a outer
	run launch other 1
	assert_notes <<<'75 full'
	: >"$T/go"
	eventually test -e "$T/free"
	launch other 2
	: >"$T/end"
	wait "$first"
	assert_notes <<<'75 full'
	assert_free
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
	launch job
	assert_notes <<<$'75 full\nacquired\nacquired'
	assert_free
}

@test "a script takes a slot of a semaphore" {
	script job <<-'E'
		ADLOCK_PROGRAM=adlock ADLOCK_SLOTS=2
		adlock_get run pictures 0 || exit
		: >|"$T/holds.$1"
		await "$T/go"
		adlock_release
	E
	start_to holds.1 job 1
	local first=$!
	start_to holds.2 job 2
	run "$ADLOCK_BIN" run --name pictures --slots 2 --verbose -- true
	assert_failure 75
	assert_output --partial 'full: at most 2 runs of pictures at once'
	: >"$T/go"
	wait "$first"
	wait "$!"
	assert_free
}
