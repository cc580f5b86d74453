#!/bin/sh
# Repeats the quick tests beside a busy processor, and lists how often each failed: a test that
# fails sometimes depends on the speed of the machine.
#
#	sh test/support/flake.sh TIMES PACKAGE...        or make flake N=20 [BATS=- quick_packages=./lib/lockdir]
#
# GO, TAGS      the command, and its build tags
# BATS          the files of the shell suite, which runs under dash: default all; '-' for none
# FLAKE_LOAD    busy processes: default 8
# FLAKE_JOBS    packages at the same time: default 6, as most tests wait
#
# build/flake keeps the output of each round. The status is 1 if any test failed.
set -eu
cd "$(dirname "$0")/../.."
times=$1
shift
kept=build/flake
rm -rf "$kept"
mkdir -p "$kept"

# The tests of each package are compiled once, before the load.
${GO:-go} list -tags "${TAGS-}" -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "$@" | grep . >"$kept/packages"
while read -r package _; do
	${GO:-go} test -c -tags "${TAGS-}" -o "$kept/$(printf %s "$package" | tr / .).test" "$package"
done <"$kept/packages"

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

# one ROUND PACKAGE DIRECTORY tests a package, and records its failures. A package that fails
# without a failed test crashed or was ended.
# shellcheck disable=SC2016
one='
	name=$(printf %s "$2" | tr / .)
	said=$1.$name
	cd "$3" && "$kept/$name.test" -test.timeout=25m >"$kept/$said" 2>&1 || {
		sed -n "s|^--- FAIL: \([^ ]*\).*|$2 \1|p" "$kept/$said" | grep . || echo "$2: see $kept/$said"
	} >>"$kept/failed"'
failed_scripts() { sed -n 's/^not ok[: 0-9]*/bats /p' "$1"; }

kept=$PWD/$kept
export kept
round=0
while [ "$round" -lt "$times" ]; do
	round=$((round + 1))
	printf 'round %s of %s\n' "$round" "$times" >&2
	sed "s/^/$round /" "$kept/packages" | xargs -P "${FLAKE_JOBS:-6}" -n 3 sh -c "$one" sh &
	# shellcheck disable=SC2086 # they are several
	[ "${BATS-}" = - ] || ADLOCK_TEST_SHELLS=dash bats/run ${BATS-} >"$kept/$round.scripts" 2>&1 || {
		failed_scripts "$kept/$round.scripts" | grep . || echo "bats/run: see $kept/$round.scripts"
	} >>"$kept/failed"
	wait "$!"
done

[ -s "$kept/failed" ] || {
	printf 'none failed in %s rounds\n' "$times"
	exit 0
}
sort "$kept/failed" | uniq -c | sort -rn
printf 'of %s rounds; what they printed is in %s\n' "$times" "$kept"
exit 1
