#!/bin/sh
# Runs a command in each of the ways in which a test suite may be started, and lists the ways
# in which the command failed.
#
#	sh test/support/ways.sh COMMAND...        or make ways
#
# WAYS   some of them: WAYS='nohup cron'
# GO     the command
#
# build/ways keeps the output of each. The status is 1 if any of them failed.
# shellcheck disable=SC2317 # the functions below are called by a name in a variable
set -eu
cd "$(dirname "$0")/../.."

kept=build/ways
mkdir -p "$kept"
scratch=$(mktemp -d)
chmod 711 "$scratch" # for tests that become another user
load=
# shellcheck disable=SC2086 # they are several
trap '[ -z "$load" ] || kill $load 2>/dev/null || :; rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# go needs at least these variables.
GOCACHE=$(${GO:-go} env GOCACHE) GOMODCACHE=$(${GO:-go} env GOMODCACHE)
bare() { env -i "PATH=$PATH" "GOCACHE=$GOCACHE" "GOMODCACHE=$GOMODCACHE" "$@"; }

under_nohup() { nohup "$@"; }
in_background() (
	trap '' INT QUIT # as a shell without job control does, and some CI runners
	"$@"
)
make_j4() { MAKEFLAGS=-j4 "$@"; }
under_cron() { bare "HOME=$HOME" LOGNAME=root SHELL=/bin/sh setsid -w sh -c "$*"; }
on_a_terminal() { script -qec "$*" /dev/null; }
without_terminal() { setsid -w "$@"; }
without_stdin() { "$@" <&-; }
without_environment() { bare "$@"; }
without_home() { bare HOME=/proc/nowhere "$@"; }
with_umask_077() (
	umask 077
	"$@"
)
with_long_TMPDIR() (
	TMPDIR=$scratch/$(printf '%090d' 0 | cut -c "1-$((89 - ${#scratch}))")
	mkdir -m 1777 "$TMPDIR"
	export TMPDIR
	"$@"
)
in_locale_C() { env -u LC_ALL -u LC_CTYPE LANG=C "$@"; }
in_locale_tr() {
	[ -e "$scratch/tr_TR.UTF-8" ] || localedef -i tr_TR -f UTF-8 "$scratch/tr_TR.UTF-8" || return
	LOCPATH=$scratch LC_ALL=tr_TR.UTF-8 "$@"
}
at_nice_19() { nice -n 19 "$@"; }
# The machine seems to have started a minute ago; this needs root. adlock does not rely on the uptime
# in a time namespace, so what is tested is a copy that takes this one for the machine's.
soon_after_boot() (
	mkdir "$scratch/tree"
	tar c --exclude=./.git --exclude=./build . | tar x -C "$scratch/tree"
	cd "$scratch/tree"
	check=lib/process/beforeboot_linux.go
	grep 'TimeNS != initialTimeNS' "$check" || {
		echo "$check: the comparison to change was not found"
		return 1
	}
	sed -i 's/TimeNS != initialTimeNS/TimeNS == initialTimeNS/' "$check"
	rm "${check%.go}_test.go" # tries the comparison as it is
	turned_back=$((60 - $(cut -d. -f1 /proc/uptime)))
	unshare --time --monotonic="$turned_back" --boottime="$turned_back" --fork "$@"
)

# Each busy process ends by itself if this script is killed.
busy() {
	while kill -0 "$1" 2>/dev/null; do
		turns=20000
		while [ "$turns" -gt 0 ]; do turns=$((turns - 1)); done
	done
}
beside_load_20() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		busy $$ &
		load="$load $!"
	done
	status=0
	"$@" || status=$?
	# shellcheck disable=SC2086 # they are several
	kill $load
	load=
	return "$status"
}

all='under_nohup in_background make_j4 under_cron on_a_terminal without_terminal without_stdin
	without_environment without_home with_umask_077 with_long_TMPDIR in_locale_C in_locale_tr
	at_nice_19 soon_after_boot beside_load_20'
failed=0
for way in ${WAYS:-$all}; do
	began=$(date +%s)
	if "$way" "$@" >"$kept/$way" 2>&1 </dev/null; then
		said=passed
	else
		said=FAILED failed=1
	fi
	printf '%-20s %s in %d s\n' "$way" "$said" "$(($(date +%s) - began))"
	[ "$said" = passed ] || grep -E '^ *--- FAIL|^FAIL|^not ok|^make' "$kept/$way" | head -n 20
done
exit "$failed"
