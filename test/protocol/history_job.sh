# shellcheck shell=sh disable=SC2034,SC2154
# The job of an `adlock run`: history_job.sh ATTEMPT ATOM WORK.
# shellcheck source=test/protocol/history_note.sh
. "$HISTORY_SOURCE/history_note.sh"
id=$1 atom=$2
job "$3"
