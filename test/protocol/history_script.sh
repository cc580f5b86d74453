# shellcheck shell=sh disable=SC2154
# A contender that uses the library: history_script.sh CONTENDER SEED. It tries one atom after the
# other until $HISTORY/stop exists, or the test ($HISTORY_TEST is its pid) is dead, and records
# events.
set -eu
# shellcheck source=sh/adlock.sh
. "$ADLOCK_SH"
# shellcheck source=test/protocol/history_note.sh
. "$HISTORY_SOURCE/history_note.sh"

contender=$1 seed=$2 n=0

# draw N puts a number from 0 to N-1 into $drawn, without a fork.
draw() {
	seed=$(((seed * 75 + 74) % 65537))
	drawn=$((seed % $1))
}

attempt() {
	draw 6
	atom=$drawn
	draw 3
	case $drawn in 0) elapsed=1 ;; *) elapsed=0 ;; esac
	n=$((n + 1)) id=$contender.$n
	note call "$atom $elapsed"
	draw 200
	work=$drawn
	draw 2
	if [ "$drawn" = 0 ]; then
		adlock_with stress "$atom" "${elapsed}s" 1s -- job "$work"
	else
		adlock_get stress "$atom" "${elapsed}s" 1s || return
		job "$work"
		adlock_release
	fi
}

while [ ! -e "$HISTORY/stop" ] && [ -d "/proc/$HISTORY_TEST" ]; do
	status=0
	attempt || status=$?
	case $status-$ADLOCK_VERDICT in
	0-*) note end released ;;
	75-busy | 75-too-soon)
		note end "$ADLOCK_VERDICT"
		sleep 0.03
		;;
	*)
		case $ADLOCK_VERDICT in lost) note end lost ;; *) note end error ;; esac
		exit
		;;
	esac
done
