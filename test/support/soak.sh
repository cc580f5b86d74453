#!/bin/sh
# Runs the parts of a soak, and records in test/soak.log of which commit they passed, and their seconds.
#
#	sh test/support/soak.sh COMMAND... -- PART...    or make soak
#	sh test/support/soak.sh                          whether the log is of the present code
#
# COMMAND PART runs a part: make fuzz. Where cmd, lib, sh or test have changes without a commit, the log
# goes to build/soak.log: no commit says what was tried. The status is 1 if a part failed, or the log is
# of other code.
set -eu
cd "$(dirname "$0")/../.."
log=test/soak.log

# changed_since COMMIT: what a soak tries differs from COMMIT. A log is of the commit before its own. CI
# tries what pages say (*.md).
changed_since() { ! git diff --quiet "$1" -- cmd lib sh test ":!$log" ':!*.md'; }

if [ "$#" -eq 0 ]; then
	commit=$(sed -n 's/^commit //p' "$log" 2>/dev/null) || :
	if [ -z "$commit" ] || grep -q FAILED "$log"; then
		echo "adlock: $log: no soak has passed: make soak" >&2
		exit 1
	elif changed_since "$commit"; then
		echo "adlock: $log: cmd, lib, sh or test have changed since: make soak" >&2
		exit 1
	fi
	exit 0
fi

commit=$(git rev-parse HEAD)
! changed_since "$commit" || log=build/soak.log
command=''
while [ "$1" != -- ]; do
	command="$command $1"
	shift
done
shift

failed=0
said=$(printf 'commit %s\ndate %s' "$commit" "$(date +%F)")
for part; do
	began=$(date +%s) result=passed
	# shellcheck disable=SC2086 # the command is several words
	$command "$part" || result=FAILED failed=1
	said=$said$(printf '\n%-12s %s in %s s' "$part" "$result" "$(($(date +%s) - began))")
done
mkdir -p build
printf '%s\n' "$said" | tee "$log"
exit "$failed"
