# shellcheck shell=sh disable=SC2034,SC2154
# The job of an `adlock run`: job.sh ATTEMPT ATOM WORK.
# shellcheck source=test/history/note.sh
. "$HISTORY_SOURCE/note.sh"
id=$1 atom=$2
job "$3"
