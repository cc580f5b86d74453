package cli

// These tests count the system calls that a lock costs.

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
	"adlock/test/support/strace"
)

// guarded are the counted system calls. Those that the Go runtime makes at will (mmap, futex, clone, rt_sigaction,
// nanosleep, epoll_pwait, getpid), and the supervisor's wake-ups (wait4), are left out.
const guarded = "execve,openat,read,write,pread64,pwrite64,close,fstat,newfstatat,lstat,stat,readlinkat,getdents64," +
	"flock,link,linkat,unlink,unlinkat,rename,renameat,renameat2,mkdirat,fchmod,fchmodat,ftruncate,utimensat,fsync,fdatasync,sync,syncfs,fstatfs," +
	"lgetxattr,pidfd_send_signal,kill,setpgid,setsid,prctl,pipe2,socket,connect,signalfd4,memfd_create"

// The system calls of one lock, by process. They are exact: the test notices one more or less. If you add a call for a
// good reason, write the new figure here and the reason in the commit. To count another verb, add a line to the script
// below and one here. The figures of a pass are for a get and a release together, in the agent and in the script.
var counted = map[string]string{
	"take":    "close 8, fchmod 1, flock 2, fstat 6, linkat 1, newfstatat 8, openat 10, pread64 1, read 2, readlinkat 1, write 2",
	"release": "close 6, flock 3, fstat 8, newfstatat 7, openat 6, pread64 3, unlinkat 1, utimensat 1, write 1",
	"run":     "close 17, fchmod 1, flock 7, fstat 16, linkat 1, newfstatat 18, openat 19, pipe2 1, prctl 4, pread64 6, read 4, readlinkat 1, unlinkat 1, utimensat 2, write 5",
	"agent":   "close 12, fchmod 1, flock 5, fstat 14, linkat 1, newfstatat 13, openat 14, pread64 4, read 4, unlinkat 1, utimensat 1, write 5",
	"script":  "close 22, newfstatat 12, openat 6, write 2",
}

func TestALockMakesExactlyTheCountedSystemCalls(t *testing.T) {
	got := map[string]strace.Calls{}
	dir, all := traced(t, `for i in 1 2; do
	adlock_get get a 0 || exit
	adlock_release || exit
	"$ADLOCK_BIN" run --name job /bin/true || exit
done`)
	for _, p := range all {
		if len(p.Args) > 1 && filepath.Base(p.Args[0]) == "adlock" {
			got[p.Args[1]] = p.Calls // the second time, when all files are there
		}
	}
	for _, verb := range []string{"take", "release", "run"} {
		compare(t, verb, got[verb].Without(strace.Calls{"newfstatat": way(dir) + 2*settingsFiles(), "openat": settingsFiles()}))
	}
}

func TestALockOfAPassMakesExactlyTheCountedSystemCalls(t *testing.T) {
	asked := func(rounds string) (dir string, agent, script strace.Calls) {
		dir, all := traced(t, "adlock_agent\nfor i in "+rounds+"; do adlock_get get a 0 && adlock_release || exit; done")
		for _, p := range all {
			switch p.Args[0] {
			case "adlock: agent":
				agent = p.Calls
			case "dash":
				script = p.Calls
			}
		}
		return dir, agent, script
	}
	_, fewerOfAgent, fewerOfScript := asked("1 2 3")
	dir, agent, script := asked("1 2 3 4")
	compare(t, "agent", agent.Without(fewerOfAgent).Without(strace.Calls{"newfstatat": 2*way(dir) + 4*settingsFiles(), "openat": 2 * settingsFiles()}))
	delete(script, "read") // dash reads byte by byte, and answers contain the lock directory's name
	compare(t, "script", script.Without(fewerOfScript))
}

// waiters has what a newcomer waits for, and how many calls of link and unlink it may then make. A
// newcomer that finds an active lock links none. A newcomer that a reader or a full slot denies for
// the first time has linked a lock of its own; from then on it checks first. (If the atom was never
// acquired, its last lock is linked too. A writer's link may fail because another writer's lock is there.)
var waiters = map[string]struct{ links, unlinks int }{
	"atom": {0, 0}, "reader": {0, 0}, "writer": {2, 1}, "slot": {3, 1}, "hold": {3, 1}, "library": {3, 1},
}

// A waiter sleeps until the lock in its way goes: no lock that it or another waiter has linked
// and unlinked wakes it, and 18 waiters do not wake each other.
func TestWaitersDoNotWakeEachOtherWhileTheLockIsHeld(t *testing.T) {
	const most = 400 // half of them are the start; a look takes some 40
	_, all := traced(t, `cd "${ADLOCK_DIR%/*}" && mkfifo end in && exec 7<>in || exit
owner() { # until a process opens the end
	mkfifo "ready-$1" # of its own: one that the last owner has not closed yet would end the read below
	( adlock_get get "$1" 0 && echo >"ready-$1" && read -r x <end ) &
	read -r x <"ready-$1"
}
waits() {
	"$@" <&7 >/dev/null &
	waiters="$waiters $!"
}
owner atom-1
owner reader-1
ADLOCK_SHARED=1 owner writer-1
ADLOCK_SLOTS=1 owner x
waiters='' ADLOCK_WAIT=2s
export ADLOCK_WAIT
for i in 1 2 3; do
	waits "$ADLOCK_BIN" run --operator get --operand atom-1 true
	waits "$ADLOCK_BIN" run --operator get --operand reader-1 --shared true
	waits "$ADLOCK_BIN" run --operator get --operand writer-1 true
	waits "$ADLOCK_BIN" run --operator get --operand "slot-$i" --slots 1 true
	waits "$ADLOCK_BIN" hold --slots 1 "hold-$i"
	ADLOCK_SLOTS=1 waits adlock_get get "library-$i" 0
done
status=0
for i in $waiters; do
	denied=0
	wait "$i" || denied=$?
	[ "$denied" = 75 ] || { status=9; echo "a waiter ended with $denied"; }
done
: >end
exit "$status"`)
	found := map[string]int{}
	for _, p := range all {
		what, is := awaited(p.Args)
		if !is {
			continue
		}
		found[what]++
		total := 0
		for _, n := range p.Calls {
			total += n
		}
		if want := waiters[what]; p.Calls["linkat"] > want.links || p.Calls["unlinkat"] > want.unlinks || total > most {
			t.Errorf("%s: %d calls: %v", what, total, p.Calls)
		}
	}
	check.Equal(t, "waiters that were seen", len(found), len(waiters))
}

// awaited returns what a helper waits for; false if the helper is no waiter.
func awaited(args []string) (what string, is bool) {
	for _, arg := range args {
		kind, _, _ := strings.Cut(arg, "-")
		if _, waits := waiters[kind]; waits && arg != kind && (args[1] != "take" || kind == "library") {
			what = kind
		}
	}
	return what, what != "" && filepath.Base(args[0]) == "adlock"
}

func compare(t *testing.T, who string, got strace.Calls) {
	t.Helper()
	if got.String() != counted[who] {
		t.Errorf("%s makes\n\t%s\nand not\n\t%s", who, cmp.Or(got.String(), "nothing"), counted[who])
	}
}

// way counts the directories above the lock directory; the helper checks each.
func way(dir string) int { return strings.Count(dir, "/") + 1 }

// settingsFiles counts the settings files that this user may have. A helper, and an agent at each
// question, tries to open each, which fails, and checks twice whether a link hides it.
func settingsFiles() int {
	if os.Geteuid() == 0 {
		return 1
	}
	return 2
}

// nameless returns a directory on a file system with unnamed files, so that every machine makes
// a lock in the same way, and without a link on its path.
func nameless(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{"/dev/shm", os.TempDir()} {
		fd, err := unix.Open(parent, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			continue
		}
		unix.Close(fd)
		dir, err := os.MkdirTemp(parent, "adlock-calls-")
		if err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			dir, err = filepath.EvalSymlinks(dir)
		}
		must(t, errors.Join(err, os.Mkdir(filepath.Join(dir, "locks"), 0o700)))
		return dir
	}
	need.Skip(t, "no file system with files without a name (O_TMPFILE)")
	return ""
}

// traced runs a script that has sourced the library, in a session of its own. It returns the
// directory above its lock directory, and the processes in the order of their starts.
func traced(t *testing.T, text string) (dir string, all []*strace.Process) {
	t.Helper()
	need.Tools(t, "strace", "dash", "true", "mkfifo")
	dir = nameless(t)
	script, log := filepath.Join(dir, "script"), filepath.Join(dir, "log")
	must(t, os.WriteFile(script, []byte(". \"$LIBRARY\" || exit 69\n"+text+"\n"), 0o600))
	r := helper.Command{
		Args: []string{"strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-e", "trace=clone,clone3,vfork,fork," + guarded, "-o", log, "dash", script},
		Env: []string{
			"LIBRARY=" + helper.Root() + "/sh/adlock.sh", "GOMAXPROCS=1",
			"ADLOCK_DIR=" + dir + "/locks", "ADLOCK_BIN=" + helper.Binary(t), "ADLOCK_HOST=h", "ADLOCK_PROGRAM=p",
		},
		Limit: 4 * helper.Patience,
	}.Run(t)
	if r.Status != 0 {
		t.Fatalf("%d: %s%s", r.Status, r.Out, r.Err)
	}
	found := get(os.ReadFile(log))(t)
	return dir, strace.Parsed(string(found))
}
