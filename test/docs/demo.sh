#!/bin/sh
# Shows what adlock does, on real processes, in under a minute.
#
#	sh test/docs/demo.sh [HELPER]
#
# HELPER is the program to show: default build/adlock of this project. Everything
# happens in a directory that is removed at the end. DEMO_SVG=FILE keeps a
# timeline of the demo, if the helper can draw one.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
helper=${1:-$here/../../build/adlock}
if [ ! -x "$helper" ]; then
	echo "demo: $helper: not found (make build makes it)" >&2
	exit 69
fi
if [ ! -r /proc/self/stat ]; then
	echo "demo: /proc: shows no processes here" >&2
	exit 69
fi
helper=$(cd "$(dirname "$helper")" && pwd)/${helper##*/}
case ${DEMO_SVG:-/} in
/*) ;;
*) DEMO_SVG=$PWD/$DEMO_SVG ;;
esac

# Drop the caller's settings.
for name in $(env | sed -n 's/^\(ADLOCK_[A-Z_]*\)=.*/\1/p'); do
	unset "$name"
done

scene=$(mktemp -d)
# Ctrl-C ends the demo, and all that it started.
trap 'kill ${first-} ${second-} 2>/dev/null || :; wait; rm -rf "$scene"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$scene/bin"
ln -s "$helper" "$scene/bin/adlock"
export PATH="$scene/bin:$PATH" ADLOCK_DIR="$scene/locks" ADLOCK_HOST=demo ADLOCK_PAUSE=1s
cd "$scene"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
	bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi

heading() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
say() { printf '%s\n' "$@"; }

# program NAME makes standard input a command, and shows it.
program() {
	cat >"bin/$1"
	chmod +x "bin/$1"
	echo
	sed -e 1d -e 's/^/      | /' "bin/$1"
}

# typed COMMAND... shows a command as if typed, and runs it.
typed() {
	printf '\n    $ %s\n' "$*"
	{ "$@" 2>&1 || echo "(exit status $?)"; } | sed 's/^/      /'
}

# living PID: the process lives. A zombie does not.
living() { grep -qs '^State:.[^Z]' "/proc/$1/status"; }

# children PID prints its living children. A small machine has no ps and no pgrep, so read
# /proc.
children() {
	for child in /proc/[0-9]*; do
		if grep -qs "^PPid:.$1\$" "$child/status" && living "${child#/proc/}"; then
			echo "${child#/proc/}"
		fi
	done
}

# alive shows which processes of $family live.
alive() {
	printf '\n      %7s  %s\n' PID COMMAND
	for pid in $family; do
		if living "$pid"; then
			printf '      %7s  %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
		fi
	done
}

# eventually COMMAND... waits until COMMAND succeeds, 20 seconds at most.
eventually() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		if [ "$tries" -gt 200 ]; then
			echo "demo: still not so: $*" >&2
			exit 70
		fi
		sleep 0.1
	done
}
held() { [ -e "locks/lock.adlock.demo.run.$1" ]; }

# sleeps: the mirror hangs. It sets $family to the mirror's supervisor, the mirror and its child.
sleeps() {
	mirror=$(children "$second") && [ -n "$mirror" ] && child=$(children "$mirror") && [ -n "$child" ] &&
		grep -q sleep "/proc/$child/comm" && family="$second $mirror $child"
}
can() { adlock --help | grep -q "^ *$1[ ,]"; }

# older SECONDS NAME: the lock is at least that old.
older() { adlock stat-age --at-least "$1"s "locks/lock.adlock.demo.run.$2"; }

heading '1. A job runs'
say 'A backup. Its running time differs from day to day; today it is four seconds.'
program backup <<'E2'
#!/bin/sh
sleep 4
echo "backup: done"
E2
printf '\n    $ adlock run --name backup backup &\n'
adlock run --name backup backup >first.out 2>&1 &
first=$!
eventually held backup
eventually older 1 backup

heading '2. Started again while it runs: busy'
say 'From cron this is silent. --verbose says why; 75 is the status of every denial.'
typed adlock run --verbose --name backup backup
printf '\n%s\n' 'Meanwhile the first one ends in peace:'
wait "$first"
echo
sed 's/^/      /' first.out

heading '3. Started again just after: too soon'
say 'At most once an hour, says this line, counted from the last completion.'
typed adlock run --verbose --name backup --if-elapsed 1h backup

heading '4. A job hangs: it is ended, with its children, and replaced'
say 'A mirror asks a server, which does not answer today.'
program mirror <<'E2'
#!/bin/sh
if [ -e server-is-down ]; then
	sleep 1000 &
	wait
fi
echo "mirror: up to date"
E2
: >server-is-down
printf '\n    $ adlock run --name mirror mirror &\n'
adlock run --name mirror mirror >second.out 2>&1 &
second=$!
eventually sleeps
alive

printf '\n%s\n' 'A start at once is denied. A start after three seconds ends the mirror that hangs:'
typed adlock run --verbose --name mirror --expire-after 3s mirror
eventually older 3 mirror
rm server-is-down
typed adlock run --verbose --name mirror --expire-after 3s mirror
wait "$second" || :
printf '\n%s\n' 'Nothing of the old one is left:'
alive

heading '5. What the record tells of it'
if can timeline; then
	typed adlock timeline
	if [ -n "${DEMO_SVG-}" ]; then
		typed adlock timeline --svg "$DEMO_SVG"
	fi
fi
echo
awk -f "$here/demo.awk" locks/program.demo.runlog
echo
