# shellcheck shell=sh disable=SC2034
# A script that guards itself: storm_guard.sh ID. Its atom is its path.
# shellcheck source=sh/adlock.sh
. "$ADLOCK_SH" || exit 69
adlock_guard 0 "$STORM_LIMIT"
id=$1 mode=x atom=${0##*/} atom=${atom%.sh}
# shellcheck source=test/protocol/storm.sh
set -- sourced
. "$STORM_SCRIPT"
hold q 0
