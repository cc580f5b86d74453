# shellcheck shell=sh disable=SC1090,SC2086,SC2154
# Every fixture script begins with this: the settings of an unusual script, as
# named in $ADLOCK_TEST_SETTINGS (eu ifs noclobber traps), then the library.
# $T is the test's own directory.
case " $ADLOCK_TEST_SETTINGS " in *' eu '*) set -eu ;; esac
case " $ADLOCK_TEST_SETTINGS " in *' noclobber '*) set -C ;; esac
case " $ADLOCK_TEST_SETTINGS " in *' traps '*) trap ': user' USR2 ;; esac
case " $ADLOCK_TEST_SETTINGS " in *' ifs '*) IFS=x ;; esac

# note TEXT adds a line to the file that the test reads afterwards.
note() {
	printf '%s\n' "$1" >>"$T/notes"
}

# await FILE waits until the file exists, about as long as `eventually` at most.
await() {
	await_tries=0
	until [ -e "$1" ]; do
		await_tries=$((await_tries + 1))
		[ "$await_tries" -lt 1800 ] || exit 99
		sleep 0.05
	done
}

# hang is an atom that does not end within the life of a test.
hang() {
	: >>"$T/${1:-hangs}"
	sleep 600
}

# again SCRIPT [ARG...] runs another script in the shell under test, as a child.
again() {
	(
		IFS=" "
		again_script=$T/$1
		shift
		exec $ADLOCK_TEST_SHELL "$again_script" "$@"
	)
}

. "$ADLOCK_SH" || exit
