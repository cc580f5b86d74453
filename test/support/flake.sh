#!/bin/sh
# Repeats the quick tests beside a busy processor, and lists which failed how often: a test
# that fails now and then depends on the speed of the machine.
#
#	sh test/support/flake.sh TIMES PACKAGE...        or make flake N=20 [BATS=- quick_packages=./lib/lockdir]
#
# GO, TAGS      the command, and its build tags
# BATS          the files of the shell suite, which runs under dash: default all; '-' for none
# FLAKE_LOAD    busy processes: default 8
#
# The output of each round is kept in build/flake. The status is 1 if any test failed.
set -eu
cd "$(dirname "$0")/../.."
times=$1
shift
kept=build/flake
rm -rf "$kept"
mkdir -p "$kept"

# Each busy process ends by itself if this script is killed.
busy() {
	while kill -0 "$1" 2>/dev/null; do
		turns=1000
		while [ "$turns" -gt 0 ]; do turns=$((turns - 1)); done
	done
}

load=
# shellcheck disable=SC2086 # they are several
trap '[ -z "$load" ] || kill $load 2>/dev/null || :' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
left=${FLAKE_LOAD:-8}
while [ "$left" -gt 0 ]; do
	left=$((left - 1))
	busy $$ &
	load="$load $!"
done

# go test prints the failed tests of a package before the package itself. A failed package
# without a failed test did not build, or broke off.
failed_packages() {
	awk '
		$1 == "---" && $2 == "FAIL:" { names[++n] = $3 }
		$1 == "FAIL" && $2 != "" {
			if (n == 0) names[++n] = "(the package)"
			for (; n > 0; n--) print $2, names[n]
		}' "$1"
}
failed_scripts() { sed -n 's/^not ok[: 0-9]*/bats /p' "$1"; }

round=0
while [ "$round" -lt "$times" ]; do
	round=$((round + 1))
	printf 'round %s of %s\n' "$round" "$times" >&2
	${GO:-go} test -tags "${TAGS-}" -short -count=1 -timeout 25m "$@" >"$kept/$round.packages" 2>&1 || {
		failed_packages "$kept/$round.packages" | grep . || echo "go test: see $kept/$round.packages"
	} >>"$kept/failed"
	# shellcheck disable=SC2086 # they are several
	[ "${BATS-}" = - ] || ADLOCK_TEST_SHELLS=dash bats/run ${BATS-} >"$kept/$round.scripts" 2>&1 || {
		failed_scripts "$kept/$round.scripts" | grep . || echo "bats/run: see $kept/$round.scripts"
	} >>"$kept/failed"
done

[ -s "$kept/failed" ] || {
	printf 'none failed in %s rounds\n' "$times"
	exit 0
}
sort "$kept/failed" | uniq -c | sort -rn
printf 'of %s rounds; what they printed is in %s\n' "$times" "$kept"
exit 1
