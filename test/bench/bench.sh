#!/bin/sh
# What a lock costs, beside what people use otherwise.
#
#	sh test/bench/bench.sh [HELPER]
#
# HELPER: default build/adlock of this project. Figures are ratios of wall time,
# from spawning a process to its end, and not seconds: those depend on the
# machine. Each row's two commands take turns, in short rounds and either one
# first; a round gives the ratio of two medians, and the row is the median of
# the rounds. The last column is how far the middle half of the rounds lies
# apart: where that is much, the machine had other things to do.
#
# BENCH_ROUNDS (default 9) and BENCH_RUNS (default 30 of each in a round) say how
# long it takes: some two minutes. The exit status is 0 whatever the figures are.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
helper=${1:-$root/build/adlock}
rounds=${BENCH_ROUNDS:-9}
runs=${BENCH_RUNS:-30}

for tool in hyperfine dash "$helper"; do
	command -v "$tool" >/dev/null || {
		echo "bench: $tool: not found" >&2
		exit 69
	}
done
helper=$(cd "$(dirname "$helper")" && pwd)/${helper##*/}

for name in $(env | sed -n 's/^\(ADLOCK_[A-Z_]*\)=.*/\1/p'); do
	unset "$name"
done
scene=$(mktemp -d)
trap 'rm -rf "$scene"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$scene"
# As it is installed: a program that is as the linker wrote it starts a tenth
# slower, for its pages lie in the cache one by one.
cp "$helper" adlock
helper=$scene/adlock
mkdir locks
chmod 700 locks
export ADLOCK_DIR="$scene/locks" ADLOCK_BIN="$helper" ADLOCK_HOST=bench ADLOCK_PROGRAM=bench

# middle FILE: the median, and the middle half's extent, of numbers line by line.
middle() {
	sort -n "$1" | awk '
		{ n[NR] = $1 }
		END { printf "%.2f %.2f\n", n[int((NR + 1) / 2)], n[int((3 * NR + 3) / 4)] - n[int((NR + 3) / 4)] }'
}

# once times $first and $second and adds the ratio of A to B. In hyperfine's CSV
# columns are counted from the right: a command may hold commas.
once() {
	hyperfine -N --style none --warmup 3 --runs "$runs" ${prepare:+--prepare "$prepare"} \
		--export-csv times.csv "$first" "$second" >/dev/null 2>hyperfine.log || {
		cat hyperfine.log >&2
		exit 70
	}
	awk -F, -v turned="$turned" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == "median") column = i - NF }
		NR > 1 { median[NR - 1] = $(NF + column) }
		END { print turned ? median[2] / median[1] : median[1] / median[2] }' times.csv >>ratios
}

# row WHAT GOAL A B [TOOL...] prints the ratio of A to B. GOAL: `-` for none.
prepare=''
row() {
	what=$1 goal=$2 a=$3 b=$4
	shift 4
	for tool; do
		command -v "$tool" >/dev/null || {
			printf '%-56s %5s %5s  %s is not installed\n' "$what" - "$goal" "$tool"
			return
		}
	done
	: >ratios
	round=0
	while [ "$round" -lt "$rounds" ]; do
		turned=$((round % 2))
		if [ "$turned" = 0 ]; then first=$a second=$b; else first=$b second=$a; fi
		once
		round=$((round + 1))
	done
	middle ratios >result
	read -r ratio spread <result
	printf '%-56s %5s %5s  %-11s ±%s\n' "$what" "$ratio" "$goal" "$(verdict)" "$spread"
}

verdict() {
	[ "$goal" != - ] || return 0
	awk -v ratio="$ratio" -v goal="$goal" 'BEGIN { print ratio <= goal ? "reached" : "not reached" }'
}

# --- What is compared ----------------------------------------------------------

cat >empty.go <<'E2'
package main

import "os"

func main() {
	if len(os.Args) > 9 {
		os.Exit(1)
	}
}
E2
cat >start.go <<'E2'
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP,
			syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
	}
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	if err != nil {
		os.Exit(1)
	}
	var status syscall.WaitStatus
	syscall.Wait4(pid, &status, 0, nil)
}
E2
if command -v go >/dev/null; then
	for program in empty start; do
		CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "linked-$program" "$program.go"
		cp "linked-$program" "go-$program"
	done
fi

# Each script takes its lock and lets go, $cycles times: so the shell's own start
# counts little.
cycles=20
cat >adlock.sh <<E2
. "$root/sh/adlock.sh" || exit 69
for i in \$(seq $cycles); do
	adlock_get get a 0 || exit
	adlock_release
done
E2
cat >flock.sh <<E2
for i in \$(seq $cycles); do
	exec 9>flock.lock
	flock -n 9 || exit 75
	exec 9>&-
done
E2
cat >dotlockfile.sh <<E2
for i in \$(seq $cycles); do
	dotlockfile -p -r 0 -l dotlockfile.lock || exit 75
	dotlockfile -u dotlockfile.lock
done
E2
cat >lockfile.sh <<E2
for i in \$(seq $cycles); do
	lockfile -r 0 lockfile.lock || exit 75
	rm -f lockfile.lock
done
E2

# The same work, of $cycles atoms: one at a time, not within 15 minutes of the
# last time, ended after 90. The last time was an hour ago. timeout needs a job.
cat >work.sh <<E2
. "$root/sh/adlock.sh" || exit 69
for i in \$(seq $cycles); do
	adlock_get work "\$i" 15 90 || exit
	\${1-:}
	adlock_release
done
E2
cat >boilerplate.sh <<E2
for i in \$(seq $cycles); do
	exec 9>"boilerplate.\$i"
	flock -n 9 || exit 75
	if [ -e "done.\$i" ] && [ -z "\$(find "done.\$i" -mmin +15)" ]; then
		exit 75
	fi
	timeout 90m true
	touch "done.\$i"
	exec 9>&-
done
E2
dash work.sh
dash boilerplate.sh
# The least that two starts of a program in Go cost.
cat >starts.sh <<E2
for i in \$(seq $cycles); do
	GOMAXPROCS=1 ./go-empty
	GOMAXPROCS=1 ./go-empty
done
E2
cat >age <<E2
#!/bin/sh
exec touch -d '1 hour ago' done.* locks/last.bench.bench.work.*
E2
chmod +x age
./age

# --- The table -------------------------------------------------------------------

printf '%-56s %5s %5s\n' 'time of the first beside that of the second' ratio goal
row 'adlock stat-age FILE : an empty Go program' 1.2 "$helper stat-age empty.go" "$scene/go-empty empty.go" go
row 'adlock run true      : flock -n FILE true' 1.3 "$helper run true" 'flock -n run.lock true' flock
row '  a Go program that only starts true : the same' - "$scene/go-start" 'flock -n run.lock true' flock go
row '  it also listens to seven signals   : the same' - "$scene/go-start listen" 'flock -n run.lock true' flock go
runs=$(((runs + 4) / 5)) # these are long
row 'get, release         : flock -n 9' - 'dash adlock.sh' 'dash flock.sh' flock
row 'get, release         : dotlockfile -l, -u' - 'dash adlock.sh' 'dash dotlockfile.sh' dotlockfile
row 'get, release         : lockfile, rm' - 'dash adlock.sh' 'dash lockfile.sh' lockfile
prepare=./age
row 'get, release         : flock, find, timeout true, touch' 0.5 'dash work.sh' 'dash boilerplate.sh' flock find timeout
row '  two starts of an empty Go program  : the same' - 'dash starts.sh' 'dash boilerplate.sh' flock find timeout go
row 'get, true, release   : flock, find, timeout true, touch' - 'dash work.sh /bin/true' 'dash boilerplate.sh' flock find timeout
