package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// The situations of TestRunScriptAndStatusAgreeInEachSituation.

func completedAgo(ago, started time.Duration) func(*world) {
	return func(w *world) { w.completed(ago, started) }
}

func held(age time.Duration, options ...string) func(*world) {
	return func(w *world) { w.hold(age, options...) }
}

func dead(age time.Duration, options ...string) func(*world) {
	return func(w *world) { w.kill(w.hold(age, options...)) }
}

func orphaned(age time.Duration) func(*world) {
	return func(w *world) { w.orphan(w.hold(age)) }
}

func paused(w *world) {
	w.completed(time.Hour, 0)
	if r := w.ask(nil, w.bin, "pause", helper.AtomName, "--for=never", "--why=new disk"); r.Status != 0 {
		w.Fatalf("%+v", r)
	}
}

func inNamespace(age time.Duration) func(*world) {
	return func(w *world) {
		unshare := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
		need.Root(w)
		need.Namespaces(w, unshare[1:]...)
		w.start(append(unshare, w.runner("x", "--expire-after=2h")...))
		w.setAge(w, age)
	}
}

// unlimited is an owner that asked for no limit. It is never overdue.
func unlimited(age time.Duration) func(*world) {
	return func(w *world) {
		w.start([]string{w.bin, "run", "--program=p", "--operator=o", "--operand=x", "--notice=never"})
		w.setAge(w, age)
	}
}

// fromInside has a job of the atom itself start the newcomer.
func fromInside(operand string, options ...string) func(*world) {
	return func(w *world) { w.inside = append(w.runner(operand, options...), "--") }
}

// fromOrphan has a job of the atom whose supervisor is dead start the newcomer. Its output goes to
// files, because no process waits for it.
func fromOrphan(options ...string) func(*world) {
	const outside = `d=$(mktemp -d -p "$0"); export d; { "$@"; } 2>/dev/null # the shell's own "Killed"
		until [ -e "$d/status" ]; do sleep 0.05; done
		cat "$d/out"; cat "$d/err" >&2; exit "$(cat "$d/status")"`
	const inside = `kill -KILL $PPID; while kill -0 $PPID 2>/dev/null; do sleep 0.05; done
		"$@" >"$d/out" 2>"$d/err"; echo $? >"$d/new"; mv "$d/new" "$d/status"`
	return func(w *world) {
		w.inside = slices.Concat([]string{"sh", "-c", outside, w.TempDir()}, w.runner("x", options...),
			[]string{"--", "sh", "-c", inside, "sh"})
	}
}

// slotTaken has another atom of the program hold one of so many slots.
func slotTaken(limit string) func(*world) {
	return func(w *world) { w.start(w.runner("y", "--slots="+limit)) }
}

func deadSlot(w *world) { w.kill(w.start(w.runner("y", "--slots=1"))) }

// ownSlot starts the newcomer inside the owner of another atom of the program, which has the
// slot: `adlock run` as a part of the owner's job, a script as the owner itself.
func ownSlot(w *world) {
	w.inside = append(w.runner("y", "--slots=1"), "--")
	w.first = "adlock_get o y 0 || exit;"
}

// foreign is a lock that another tool has made, dated that long ago.
func foreign(text func(*world) string, age time.Duration) func(*world) {
	return func(w *world) {
		lock := w.place.(directory).lock()
		writeFile(w, lock, text(w))
		at := time.Now().Add(-age)
		must(w, os.Chtimes(lock, at, at))
	}
}

func empty(*world) string { return "" }

func livingPID(w *world) string {
	return itoa(helper.Command{Args: []string{"sleep", "1000"}}.Start(w).PID) + "\n"
}

// bare is a lock of a store whose maker was cut off before it wrote its record.
func bare(age time.Duration) func(*world) {
	return func(w *world) {
		s := w.place.(ftpStore)
		dir := s.root + "/lock." + helper.AtomName + ".7"
		must(w, os.Mkdir(dir, 0o777))
		must(w, os.Chown(dir, s.uid, -1))
		seen := filepath.Join(dir, "seen")
		must(w, os.WriteFile(seen, nil, 0o600))
		must(w, os.Chown(seen, s.uid, -1))
		at := time.Now().Add(-age)
		must(w, os.Chtimes(seen, at, at))
	}
}

// waitedFor is an atom with a reader, and a writer that waits.
func waitedFor(w *world) {
	w.hold(0, "--shared")
	helper.Command{Args: append(w.runner("x", "--wait=1h"), "--", "true"), Env: w.env()}.Start(w)
	helper.Eventually(w, "the writer stands in line", func() bool { return w.place.(etcdStore).waiting() == 1 })
}

// changing is the situation while a process holds the guard of the one lock.
func changing(situation func(*world)) func(*world) {
	return func(w *world) {
		situation(w)
		lock := w.files()[0]
		guard := helper.Command{Args: []string{"flock", lock, "sh", "-c", "echo held; exec sleep 1000"}}.Start(w)
		helper.Eventually(w, "the guard is held", func() bool { return strings.Contains(guard.Output(), "held") })
	}
}

const hour, minute = time.Hour, time.Minute

var situations = []situation{
	{claim: "an atom that never ran is free", where: everywhere,
		want: "free: never completed, IfElapsed is 0s, no ExpireAfter", status: "none"},
	{claim: "one that is to run once and did is too soon", where: everywhere, ask: "--if-elapsed=never",
		setUp: completedAgo(5*hour, 0), want: "too soon: completed 5h ago, IfElapsed is never"},
	{claim: "a paused atom is denied though it is due", where: inDirectory, setUp: paused,
		want: "paused: until it is resumed (new disk)"},
	{claim: "an atom that completed of late is too soon", where: everywhere, ask: "--if-elapsed=15m",
		setUp: completedAgo(192*time.Second, 0),
		want:  "too soon: completed 3m12s ago, IfElapsed is 15m; due in 11m48s"},
	{claim: "an atom that completed long ago is due", where: everywhere, ask: "--if-elapsed=15m",
		setUp: completedAgo(20*minute, 0), want: "free: completed 20m ago, IfElapsed is 15m, no ExpireAfter"},
	{claim: "counted from its start an atom is due though it completed of late", where: everywhere,
		ask:   "--from-start --if-elapsed=10m",
		setUp: completedAgo(2*minute, 11*minute),
		want:  "free: started 11m ago, IfElapsed is 10m less 30s, no ExpireAfter"},
	{claim: "a pass clock says how long ago it completed", where: everywhere, ask: "--now=1h --if-elapsed=30m",
		setUp: completedAgo(0, 0), want: "free: completed 1h ago, IfElapsed is 30m, no ExpireAfter",
		status: "too soon: completed 0s ago, IfElapsed is 30m; due in 30m"}, // status does not know the pass
	{claim: "what completed since the pass began is too soon", where: everywhere, ask: "--now=-1h --if-elapsed=30m",
		setUp: completedAgo(0, 0), want: "too soon: completed since the pass began, IfElapsed is 30m; due in 1h30m",
		status: "too soon: completed 0s ago, IfElapsed is 30m; due in 30m"},
	{claim: "a last lock in the future is not believed", where: everywhere, ask: "--if-elapsed=15m",
		setUp: completedAgo(-hour, 0),
		want:  "free: the last lock lies in the future, IfElapsed is 15m, no ExpireAfter"},
	{claim: "an atom whose owner lives is busy", where: everywhere,
		setUp: held(10 * minute), want: "busy: running for 10m, ExpireAfter is 2h (its owner's)"},
	{claim: "too soon comes before busy", where: everywhere, ask: "--if-elapsed=15m",
		setUp: func(w *world) { w.completed(3*minute, 0); w.hold(10*minute, "--if-elapsed=1m") },
		want:  "too soon: completed 3m ago, IfElapsed is 15m; due in 12m", status: "busy: running for 10m, ExpireAfter is 2h"},
	{claim: "too soon is counted from the start for an owner that asked so", where: everywhere,
		ask: "--from-start --if-elapsed=10m",
		setUp: func(w *world) {
			w.completed(2*minute, 11*minute)
			w.hold(10*minute, "--from-start", "--if-elapsed=10m")
		},
		want: "busy: running for 10m, ExpireAfter is 2h (its owner's)"},
	{claim: "a pass clock lets an owner expire", where: everywhere, ask: "--now=3h",
		setUp:  held(10 * minute),
		want:   "expired: running for 3h10m, ExpireAfter is 2h (its owner's); it would be ended",
		status: "busy: running for 10m, ExpireAfter is 2h"},
	{claim: "a living owner that has expired would be ended", where: everywhere,
		setUp: held(3 * hour), want: "expired: running for 3h, ExpireAfter is 2h (its owner's); it would be ended"},
	{claim: "a dead owner is replaced whatever its age", where: everywhere,
		setUp: dead(minute), want: "free: the owner is dead; its lock would be replaced"},
	{claim: "a dead owner whose job lives is busy", where: inDirectory,
		setUp: orphaned(10 * minute), want: "busy: running for 10m, ExpireAfter is 2h (its owner's)"},
	{claim: "an owner that cannot be checked and has expired is stuck", where: inDirectory,
		setUp: inNamespace(3 * hour),
		want:  "stuck: running for 3h, ExpireAfter is 2h (its owner's), and its owner cannot be checked from here"},
	{claim: "an owner that has expired and is being ended is busy", where: inDirectory,
		setUp: changing(held(3 * hour)), want: "busy: another process is changing the lock"},
	{claim: "a lock with only a pid that lives is busy whatever its age", where: inDirectory,
		setUp: foreign(livingPID, 300*hour), want: "busy: the lock has only a pid, which lives"},
	{claim: "an empty lock that stays is cleared", where: inDirectory,
		setUp: foreign(empty, 5*minute), want: "free: the lock is empty and 5m old; it would be cleared"},
	{claim: "a lock that never said whose it is is busy for a minute", where: onFTP,
		setUp: bare(0), want: "busy: the lock is empty, perhaps being written"},
	{claim: "a lock that never said whose it is is cleared if it stays", where: onFTP,
		setUp: bare(5 * minute), want: "free: the lock is empty and 5m old; it would be cleared"},
	{claim: "an atom is busy for its own job whatever its age", where: everywhere, ask: "--expire-after=0",
		setUp: fromInside("x", "--expire-after=0"), want: "busy: the atom is running this very program"},
	{claim: "what is left of a dead owner's job is busy for itself", where: inDirectory, ask: "--expire-after=0",
		setUp: fromOrphan("--expire-after=0"), want: "busy: running for 0s, ExpireAfter is 0s",
		status: "busy: running for 0s, no ExpireAfter"},
	{claim: "an owner without a limit is left alone", where: everywhere,
		setUp: unlimited(300 * hour), want: "busy: running for 1w5d12h, no ExpireAfter"},
	{claim: "the newcomer's limit counts for an owner without one", where: everywhere, ask: "--expire-after=2h",
		setUp: unlimited(3 * hour), want: "expired: running for 3h, ExpireAfter is 2h; it would be ended",
		status: "busy: running for 3h, no ExpireAfter"},
	{claim: "the newcomer's limit wins over the owner's", where: everywhere, ask: "--expire-after=2h",
		setUp: held(3*hour, "--expire-after=5h"), want: "expired: running for 3h, ExpireAfter is 2h; it would be ended",
		status: "busy: running for 3h, ExpireAfter is 5h"}, // to a newcomer with the owner's limit
	{claim: "an owner that ends its job itself is given the time", where: everywhere, ask: "--expire-after=1h",
		setUp: held(62*minute, "--expire-after=1h", "--enforce", "--pause=1m"),
		want:  "busy: running for 1h2m, ExpireAfter is 1h (its owner enforces it)"},
	{claim: "an owner that should have ended its job itself is ended", where: everywhere, ask: "--expire-after=1h",
		setUp: held(66*minute, "--expire-after=1h", "--enforce", "--pause=1m"),
		want:  "expired: running for 1h6m, ExpireAfter is 1h (its owner enforces it); it would be ended"},
	{claim: "a writer finds readers busy", where: inDirectory | onEtcd,
		setUp: held(10*minute, "--shared"), want: "busy: running for 10m, ExpireAfter is 2h (its owner's)"},
	{claim: "a reader joins readers", where: inDirectory | onEtcd, ask: "--shared",
		setUp: held(10*minute, "--shared"), want: "free: never completed, IfElapsed is 0s, no ExpireAfter",
		status: "busy: running for 10m, ExpireAfter is 2h"}, // to a writer
	{claim: "a reader finds a writer busy", where: inDirectory | onEtcd, ask: "--shared",
		setUp: held(10 * minute), want: "busy: running for 10m, ExpireAfter is 2h (its owner's)"},
	{claim: "a reader that has expired is nothing to a reader", where: inDirectory | onEtcd, ask: "--shared",
		setUp: held(3*hour, "--shared"), want: "free: never completed, IfElapsed is 0s, no ExpireAfter",
		status: "expired: running for 3h, ExpireAfter is 2h; it would be ended"},
	{claim: "a dead reader is replaced by a writer", where: inDirectory | onEtcd,
		setUp: dead(minute, "--shared"), want: "free: the owner is dead; its lock would be replaced"},
	{claim: "a reader does not overtake a writer that waits", where: onEtcd, ask: "--shared",
		setUp: waitedFor, want: "busy: others wait for it",
		status: "busy: running for 0s, ExpireAfter is 2h"}, // to a writer
	{claim: "a writer does not overtake a writer that waits", where: onEtcd,
		setUp: waitedFor, want: "busy: running for 0s, ExpireAfter is 2h (its owner's)"},
	{claim: "a limit that is not learned yet leaves the owner's in force", where: everywhere, ask: "--expire-after=auto",
		setUp: held(10 * minute), want: "busy: running for 10m, ExpireAfter is 2h (its owner's)"},
	{claim: "an atom is full if other atoms have all slots", where: everywhere, ask: "--slots=1",
		setUp: slotTaken("1"), want: "full: an atom of p is running", status: "none"},
	{claim: "busy comes before full", where: everywhere, ask: "--slots=1",
		setUp: func(w *world) { slotTaken("1")(w); w.hold(0) },
		want:  "busy: running for 0s, ExpireAfter is 2h (its owner's)"},
	{claim: "a slot of a dead owner is taken", where: inDirectory, ask: "--slots=1",
		setUp: deadSlot, want: "free: never completed, IfElapsed is 0s, no ExpireAfter", status: "none"},
	{claim: "a slot in a store is its dead owner's until the lease is over", where: inStores, ask: "--slots=1",
		setUp: deadSlot, want: "full: an atom of p is running", status: "none"},
	{claim: "a slot is shared with what its owner nests, and full for its owner's job", where: everywhere,
		ask:   "--slots=1",
		setUp: ownSlot, want: "full: an atom of p is running", status: "none",
		script: "free: never completed, IfElapsed is 0s"},
}
