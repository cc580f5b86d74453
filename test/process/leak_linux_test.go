package process

// These tests count descriptors, processes, goroutines, files and inodes before and after many locks. None may grow.

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/test/support/actor"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// newDir is a lock directory on a file system of its own, if possible, so that its inodes can be counted.
func newDir(t *testing.T) string {
	t.Helper()
	path := helper.Dir(t)
	if os.Geteuid() == 0 && unix.Mount("leak", path, "tmpfs", 0, "mode=0700,size=64m") == nil {
		t.Cleanup(func() {
			if err := unix.Unmount(path, 0); err != nil {
				t.Error("something still holds the file system: ", err)
			}
		})
	}
	return path
}

// times is a number of repetitions: a tenth of n in the short form.
func times(n int) int {
	if need.Soak {
		return n
	}
	return n / 10
}

// count is what must not grow.
type count struct {
	descriptors, children, goroutines int
	inodes                            uint64 // used in the whole file system; 0 if it is no tmpfs
	files                             string
}

// within reports whether no count has grown. (A count may shrink: some of what was counted before was ending.)
func (c count) within(before count) bool {
	return c.descriptors <= before.descriptors && c.children <= before.children &&
		c.goroutines <= before.goroutines && c.inodes <= before.inodes && c.files == before.files
}

func take(t *testing.T, dir string) count {
	t.Helper()
	var c count
	descriptors := must.Get(os.ReadDir("/proc/self/fd"))(t)
	c.descriptors, c.children, c.goroutines = len(descriptors), children(t), runtime.NumGoroutine()
	var fs unix.Statfs_t
	must.Do(t, unix.Statfs(dir, &fs))
	if fs.Type == unix.TMPFS_MAGIC {
		c.inodes = fs.Files - fs.Ffree
	}
	entries := must.Get(os.ReadDir(dir))(t)
	for _, entry := range entries {
		c.files += entry.Name() + "\n"
	}
	return c
}

// children counts the children of this process, zombies too.
func children(t *testing.T) int {
	t.Helper()
	lists := must.Get(filepath.Glob("/proc/self/task/*/children"))(t)
	n := 0
	for _, path := range lists {
		text, _ := os.ReadFile(path) // the thread may have ended since
		n += len(strings.Fields(string(text)))
	}
	return n
}

// steady works until all permanent files exist (the last lock, the runlog and its older half), and
// expects that many more runs to leave nothing.
func steady(t *testing.T, dir string, times int, work func(n int)) {
	t.Helper()
	for n := 0; !actor.Exists(filepath.Join(dir, "program.dax.runlog.1")); n++ {
		work(n)
	}
	before := take(t, dir)
	for n := range times {
		work(n)
	}
	var after count
	for deadline := time.Now().Add(helper.Patience); ; time.Sleep(10 * time.Millisecond) {
		if after = take(t, dir); after.within(before) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %d times:\n%+v\nwas\n%+v", times, after, before)
		}
	}
}

// newLocker keeps its runlog so short that it is rotated all the time.
func newLocker(t *testing.T, dir string) *lockdir.Locker {
	t.Helper()
	d := must.Get(lockfile.Open(dir))(t)
	t.Cleanup(func() { d.Close() })
	return &lockdir.Locker{Dir: d, Recorder: locker.Recorder{Log: &runlog.Log{Dir: dir, Host: "dax", Max: 4096}}}
}

func request(owner process.Identity) locker.Request {
	return locker.Request{
		Atom: atom.Atom{Program: "p", Host: "dax", Operator: "o", Operand: "x"}, Owner: owner,
		Limits: policy.Limits{ExpireAfter: time.Hour, Source: policy.Said}, Pause: time.Second,
	}
}

func mustTake(t *testing.T, k *lockdir.Locker, r locker.Request, want locker.Verdict) string {
	t.Helper()
	outcome, err := k.Take(r)
	if err != nil || outcome.Verdict != want {
		t.Fatalf("%+v, %v; want %s", outcome, err, want)
	}
	return outcome.Token
}

func TestManyLocksLeakNoFilesProcessesOrDescriptors(t *testing.T) {
	dir := newDir(t)
	k, r := newLocker(t, dir), request(identityOf(t, os.Getpid()))
	steady(t, dir, times(10_000), func(n int) {
		r.Slots, r.FromStart = n%3, n%2 == 0
		token := mustTake(t, k, r, locker.Acquired)
		must.Do(t, k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: token}))
	})
}

func TestManyTakeoversLeakNoFilesProcessesOrDescriptors(t *testing.T) {
	dir := newDir(t)
	k := newLocker(t, dir)
	steady(t, dir, times(200), func(n int) {
		owner := exec.Command("sleep", "1000")
		owner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		must.Do(t, owner.Start())
		ended := make(chan error, 1)
		go func() { ended <- owner.Wait() }()
		first, second := request(identityOf(t, owner.Process.Pid)), request(identityOf(t, os.Getpid()))
		if n%4 == 0 { // a dead owner is reclaimed, a live one ended
			mustTake(t, k, first, locker.Acquired)
			must.Do(t, owner.Process.Kill())
			<-ended
		} else {
			mustTake(t, k, first, locker.Acquired)
			second.Limits.ExpireAfter = 0
		}
		token := mustTake(t, k, second, locker.Acquired)
		must.Do(t, k.Release(locker.ReleaseRequest{Name: second.Atom.Name(), Token: token}))
		if n%4 != 0 {
			<-ended
		}
	})
}

func TestDenialsAndErrorsLeakNoFilesProcessesOrDescriptors(t *testing.T) {
	dir := newDir(t)
	k, r := newLocker(t, dir), request(identityOf(t, os.Getpid()))
	lock := atom.File{Kind: atom.ActiveLock, Name: r.Atom.Name()}
	patient, soon := r, r
	patient.Wait = time.Millisecond
	soon.Limits.IfElapsed = time.Hour
	steady(t, dir, times(300), func(int) {
		token := mustTake(t, k, r, locker.Acquired)
		mustTake(t, k, r, locker.Busy)
		mustTake(t, k, patient, locker.Busy)
		if k.Release(locker.ReleaseRequest{Name: lock.Name, Token: "another"}) == nil || k.Clear(lock) == nil {
			t.Fatal("the lock was given away")
		}
		must.Do(t, k.Release(locker.ReleaseRequest{Name: lock.Name, Token: token}))
		mustTake(t, k, soon, locker.TooSoon)
		must.Do(t, os.WriteFile(k.Dir.Path(lock.String()), []byte("47"), 0o600))
		if _, err := k.Take(r); err == nil {
			t.Fatal("a damaged lock was taken for none")
		}
		must.Get(k.List())(t)
		must.Do(t, k.Clear(lock))
	})
}

func TestRunsOfTheProgramLeakNoFilesOrProcesses(t *testing.T) {
	a := helper.NewAtom(t)
	a.Dir = newDir(t)
	mark := a.Mark(t)
	script := `
		export "JOB=$ADLOCK_DIR" ADLOCK_LOG_MAX=4096
		n=0
		while [ $n -lt 25 ]; do
			$run --slots 2 true || exit
			$run --quiet-ok --from-start sh -c 'echo told; exit 0' || exit
			$take || exit
			$run true 2>/dev/null; [ $? -eq 75 ] || exit 99
			$adlock release "$ADLOCK_DIR/lock.p.dax.o.x" || exit
			n=$((n + 1))
		done`
	steady(t, a.Dir, 4, func(int) {
		if got := a.Shell(t, script); got.Status != 0 || got.Out+got.Err != "" {
			t.Fatalf("%+v", got)
		}
	})
	if left := helper.With(mark); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}
