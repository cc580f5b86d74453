package lockfile

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestMarkedReturnsTheErrorOfItsCallback(t *testing.T) {
	d, failed, mark := newDir(t), errors.New("failed"), "read.x"
	for _, marks := range []func() error{
		func() error { return nil }, func() error { return d.MarkRead("x") },
		func() error { return errors.Join(os.Remove(d.Path(mark)), os.Mkdir(d.Path(mark), 0o700)) },
	} {
		must.Do(t, marks())
		if err := d.Marked("x", func() error { return failed }); !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
	}
	if err := d.MarkRead("x"); err == nil {
		t.Error("a directory is taken for the mark")
	}
}

// openFiles counts this process's descriptors.
func openFiles(t *testing.T) int {
	t.Helper()
	list := must.Get(os.ReadDir("/proc/self/fd"))(t)
	return len(list)
}

func TestARefusedFileOrDirectoryIsClosed(t *testing.T) {
	lax := t.TempDir()
	must.Do(t, os.Chmod(lax, 0o777))
	for claim, call := range map[string]func(d *Dir) error{
		"a directory of all": func(*Dir) error { _, err := Open(lax); return err },
		"a lock that others may write": func(d *Dir) error {
			must.Do(t, os.Chmod(d.Path("lock.x"), 0o660))
			_, err := d.Active("x")
			return err
		},
		"a last lock that is too large": func(d *Dir) error {
			must.Do(t, os.Truncate(d.Path("last.x"), 1<<40))
			if _, err := d.Last("x"); fault.KindOf(err) == fault.IO {
				return err
			}
			return nil
		},
	} {
		d := lockedDir(t)
		must.Do(t, d.MakeLast("x", record.Memory{}))
		before := openFiles(t)
		if err := call(d); err == nil {
			t.Errorf("%s: no error", claim)
		}
		if left := openFiles(t) - before; left != 0 {
			t.Errorf("%s: %d files are left open", claim, left)
		}
	}
}

// eachUse has the uses of a directory with a lock, a last lock, a tick and the readers' mark of one atom.
var eachUse = map[string]func(d *Dir) error{
	"guard":  func(d *Dir) error { return d.guarded(func(*Active) error { return nil }) },
	"remove": func(d *Dir) error { return d.guarded((*Active).Remove) },
	"append a command": func(d *Dir) error {
		return d.guarded(func(a *Active) error { return a.AppendCommand(member(20)) })
	},
	"take back what was appended": func(d *Dir) error {
		return d.guarded(func(a *Active) error {
			return errors.Join(a.AppendSurvivors([]process.Identity{member(20)}), a.Withdraw())
		})
	},
	"the locks of an owner": func(d *Dir) error {
		held, err := d.LocksOf([]process.Identity{fullRecord().Owner}, atom.File{}, 0)
		namesOf(held)
		return err
	},
	"the lock of another": func(d *Dir) error {
		_, err := d.LockOf(member(1), atom.File{Kind: atom.ActiveLock, Name: reads}, 0)
		return err
	},
	"files":        func(d *Dir) error { _, err := d.Files(atom.ActiveLock); return err },
	"last":         func(d *Dir) error { _, err := d.Last(reads); return err },
	"last changed": func(d *Dir) error { _, err := d.LastChanged(reads); return err },
	"make last":    func(d *Dir) error { return d.MakeLast("p.h.o.y", record.Memory{}) },
	"remember":     func(d *Dir) error { return d.Remember(reads, time.Now(), record.Memory{}) },
	"stamp":        func(d *Dir) error { return d.Stamp(reads, record.Memory{}) },
	"stamp anew":   func(d *Dir) error { return d.Stamp("p.h.o.y", record.Memory{}) },
	"remove last":  func(d *Dir) error { return d.RemoveLast(reads) },
	"mark read":    func(d *Dir) error { return d.MarkRead(reads) },
	"marked":       func(d *Dir) error { return d.Marked(reads, func() error { return nil }) },
	"readers":      func(d *Dir) error { _, err := d.Readers(reads); return err },
	"link":         func(d *Dir) error { return d.placed((*TempFile).Link, "lock.p.h.o.y") },
	"replace":      func(d *Dir) error { return d.placed((*TempFile).Replace, "lock."+reads) },
	"withdraw": func(d *Dir) error {
		return d.placed(func(t *TempFile, name string) error {
			if err := t.Link(name); err != nil {
				return err
			}
			return t.Withdraw()
		}, "lock.p.h.o.y")
	},
	"touch": func(d *Dir) error {
		return d.placed(func(t *TempFile, _ string) error { _, err := t.Touch(); return err }, "")
	},
	"sweep":     func(d *Dir) error { return d.Sweep(time.Now().Add(time.Hour)) },
	"a tick":    func(d *Dir) error { _, err := d.HasTick(reads, tick(1)); return err },
	"remove it": func(d *Dir) error { return d.RemoveTick(reads, tick(1)) },
	"ticks": func(d *Dir) error {
		ticks, err := d.Files(atom.Tick)
		return errors.Join(err, d.RemoveTicks(ticks, reads, anyTick))
	},
	"visit": func(d *Dir) error { _, err := OfUser(d.fd, d.path, &Visit{UID: os.Geteuid()}); return err },
	"name a temporary file": func(d *Dir) error {
		temp, err := d.temporary()
		if err == nil {
			temp.Close()
		}
		return err
	},
}

// guarded calls use with the lock, under its guard.
func (d *Dir) guarded(use func(*Active) error) error {
	a, err := d.Active(reads)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Guard(0); err != nil {
		return err
	}
	return use(a)
}

func (d *Dir) placed(place func(*TempFile, string) error, name string) error {
	temp, err := d.TempFile(fullRecord().Bytes())
	if err != nil {
		return err
	}
	defer temp.Discard()
	return place(temp, name)
}

func TestEachFailedSystemCallIsReportedAndLeaksNoDescriptor(t *testing.T) {
	calls := []int{
		unix.SYS_OPENAT, unix.SYS_NEWFSTATAT, unix.SYS_FSTAT, unix.SYS_FLOCK, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_FCHMOD,
		unix.SYS_LINKAT, unix.SYS_RENAMEAT, unix.SYS_UNLINKAT, unix.SYS_UTIMENSAT, unix.SYS_GETDENTS64, unix.SYS_FTRUNCATE,
	}
	for claim, use := range eachUse {
		for n, failed := 1, -1; failed != 0; n++ {
			d := newDir(t)
			for file, content := range map[string][]byte{
				"lock." + reads: append(fullRecord().Bytes(), "surv"...), "temp." + record.NewToken(): nil, tickFile(reads, 1): nil,
			} {
				must.Do(t, os.WriteFile(d.Path(file), content, 0o600))
			}
			must.Do(t, d.MakeLast(reads, record.Memory{}))
			must.Do(t, d.MarkRead(reads))
			before := openFiles(t)
			var err error
			seen := 0
			failed = 0
			intercept.Run(t, func() { err = use(d) }, func(c intercept.Call) unix.Errno {
				if c.Number == unix.SYS_FLOCK && c.FD(1) == unix.LOCK_UN { // closing unlocks anyway
					return 0
				}
				if seen++; seen != n {
					return 0
				}
				failed = c.Number
				return unix.EIO
			}, calls...)
			if left := openFiles(t) - before; left != 0 {
				t.Errorf("%s, call %d (%d): %d files are left open", claim, n, failed, left)
			}
			if told := fault.KindOf(err) == fault.IO; told != (failed != 0) {
				t.Errorf("%s, call %d (%d): %v", claim, n, failed, err)
			}
		}
	}
}

// FUSE has no files without a name, old kernels do not know the flag, and without /proc such a file cannot get a name.
func TestATemporaryFileIsNamedWhereNamelessFilesFail(t *testing.T) {
	for call, numbers := range map[int][]unix.Errno{unix.SYS_OPENAT: {unix.EOPNOTSUPP, unix.EISDIR, unix.ENOENT}, unix.SYS_FACCESSAT: {unix.ENOENT}} {
		for _, number := range numbers {
			d := newDir(t)
			before := openFiles(t)
			var temp *TempFile
			var err error
			seen := 0
			intercept.Run(t, func() { temp, err = d.TempFile(fullRecord().Bytes()) }, func(intercept.Call) unix.Errno {
				if seen++; seen == 1 {
					return number
				}
				return 0
			}, call)
			must.Do(t, err)
			if !temp.Named() {
				t.Errorf("%v: it has no name", number)
			}
			must.Do(t, temp.Link("lock.x"))
			temp.Discard()
			active(t, d).Close()
			mustHold(t, d, "lock.x")
			if left := openFiles(t) - before; left != 0 {
				t.Errorf("%v: %d files are left open", number, left)
			}
		}
	}
}

func limitedTo(t *testing.T, size uint64, call func()) {
	t.Helper()
	var before syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	limited := before
	limited.Cur = size
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited))
	defer func() { must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }()
	call()
}

func TestATemporaryFileThatDoesNotFitIsReportedAndRemoved(t *testing.T) {
	d := newDir(t)
	limitedTo(t, 4096, func() { // like a full disk
		if temp, err := d.TempFile(make([]byte, 1<<16)); err == nil {
			temp.Discard()
			t.Error("no error")
		}
	})
	mustHold(t, d)
}

func wantHolder(t *testing.T, a *Active, want int) {
	t.Helper()
	if holder := a.GuardHolder(); holder != want {
		t.Errorf("%d holds the guard, want %d", holder, want)
	}
}

func TestAThirdUsersLockInAnotherUsersDirectoryIsRefused(t *testing.T) {
	need.Root(t)
	d := lockedDir(t)
	foreign := must.Get(OfUser(d.fd, d.path, &Visit{UID: 4711, Alive: func() bool { return true }}))(t)
	must.Do(t, os.Chown(d.Path("lock.x"), 4711, 4711))
	a := must.Get(foreign.Active("x"))(t)
	if uid := a.Job().FileUID; uid != 4711 {
		t.Errorf("it is of %d", uid)
	}
	a.Close()
	must.Do(t, os.Chown(d.Path("lock.x"), 4712, 4712))
	_, err := foreign.Active("x")
	refused(t, "a third user's", err)
}

func TestEachErrorOfCreatingAFileHasItsKindOrAdvice(t *testing.T) {
	for err, want := range map[error]fault.Kind{unix.EACCES: fault.CannotCreate, unix.EPERM: fault.CannotCreate, unix.EROFS: fault.CannotCreate, unix.EIO: fault.IO, unix.ENOSPC: fault.IO} {
		if got := fault.KindOf(cannotCreate("x", err)); got != want {
			t.Errorf("%v: status %d, want %d", err, got, want)
		}
	}
	for err, want := range map[error]fault.Kind{unix.ENOENT: fault.CannotCreate, unix.ENOTDIR: fault.CannotCreate, unix.ELOOP: fault.CannotCreate, unix.EACCES: fault.NotPermitted, unix.EIO: fault.IO} {
		if got := fault.KindOf(openFailed("/nowhere/at/all", err)); got != want {
			t.Errorf("opening: %v: status %d, want %d", err, got, want)
		}
	}
	for err, refused := range map[error]bool{unix.EPERM: true, unix.EOPNOTSUPP: true, unix.ENOSYS: true, unix.EACCES: false} {
		if got := cannotLink("x", err); strings.Contains(got.Error(), "hard links are refused here") != refused {
			t.Errorf("linking: %v", got)
		}
	}
	for err, want := range map[error]string{unix.EACCES: "/x/y: mkdir: permission denied (" + config.WayOut("/x/y") + ")", unix.EIO: "/x/y: mkdir: input/output error"} {
		if got := cannotMake("/x/y", &os.PathError{Op: "mkdir", Path: "/x", Err: err}); got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
