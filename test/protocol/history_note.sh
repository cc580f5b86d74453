# shellcheck shell=sh disable=SC2154
# What the scripts of this test share. $id is the attempt, $atom its atom.

# note KIND [WORDS] appends an event, with one write.
note() {
	read -r up _ </proc/uptime
	echo "$1 $id $up ${2-}" >>"$HISTORY/events"
}

# job WORK is an atom's job. As long as a process of it lives, it holds flock(2) on a file of the
# atom's. WORK is a number below 200 (one job in 200 hangs, and one hangs and ignores signals), or
# long.
job() {
	note in
	{
		flock -n 9 || [ $? -ne 1 ] || note clash # other statuses: flock itself was killed
		case $1 in
		0) sleep 60 ;;
		1) (trap '' INT TERM && exec sleep 60) ;;
		??) sleep 0.01 ;;
		long) sleep 3 ;;
		esac
		note out
	} 9>>"$HISTORY/occupied.$atom"
}
