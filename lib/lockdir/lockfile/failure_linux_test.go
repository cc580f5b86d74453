package lockfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/intercept"
	"adlock/test/support/need"
)

// closed is the directory with a descriptor on which every call fails.
func closed(d *Dir) *Dir { return &Dir{path: d.path, fd: -1, uid: d.uid, entered: d.entered} }

// onlyToRead opens the lock "x" so that it cannot be written.
func onlyToRead(t *testing.T, d *Dir) *Active {
	t.Helper()
	f, err := d.openFile("lock.x", unix.O_RDONLY)
	must(t, err)
	a := &Active{file: *f}
	must(t, a.load())
	t.Cleanup(func() { a.Close() })
	return a
}

func TestNoFailedCallIsTakenForSuccess(t *testing.T) {
	d := newDir(t)
	put(t, d, fullRecord())
	must(t, d.MakeLast("x", record.Memory{}))
	must(t, os.WriteFile(d.Path("read.x"), nil, 0o600))
	whole, bad := active(t, d), closed(d)
	noName := func() *Active { a := *whole; a.dir = bad; return &a }
	noFile := func() *Active { a := *whole; a.fd = -1; return &a }
	temp := func(dir *Dir, fd int, temporary string) *TempFile {
		return &TempFile{file: file{dir: dir, name: "lock.x", fd: fd, st: whole.st}, temporary: temporary}
	}
	members := []process.Identity{member(20)}
	for claim, call := range map[string]func() error{
		"check":                      bad.check,
		"close":                      bad.Close,
		"files":                      func() error { _, err := bad.Files(); return err },
		"active":                     func() error { _, err := bad.Active("x"); return err },
		"reader":                     func() error { _, err := bad.Lock(atom.File{Kind: atom.ReaderLock, Name: "x", Number: 1}); return err },
		"last":                       func() error { _, err := bad.Last("x"); return err },
		"last changed":               func() error { _, err := bad.LastChanged("x"); return err },
		"make last":                  func() error { return bad.MakeLast("x", record.Memory{}) },
		"remember":                   func() error { return bad.Remember("x", time.Now(), record.Memory{}) },
		"stamp":                      func() error { return bad.Stamp("x", record.Memory{}) },
		"stamp anew":                 func() error { return bad.stampAnew("x", record.Memory{}) },
		"remove last":                func() error { return bad.RemoveLast("x") },
		"mark read":                  func() error { return bad.MarkRead("x") },
		"marked":                     func() error { return bad.Marked("x", func() error { return nil }) },
		"readers":                    func() error { _, err := bad.Readers("x"); return err },
		"temporary file":             func() error { _, err := bad.TempFile(nil); return err },
		"temporary file with a name": func() error { _, err := bad.temporary(); return err },
		"temporary file without one": func() error { _, err := bad.nameless(); return err },
		"fill":                       func() error { return temp(d, -1, "").fill(func(uint64) []byte { return nil }) },
		"link nameless":              func() error { return temp(bad, whole.fd, "").Link("lock.y") },
		"link":                       func() error { return temp(bad, whole.fd, "temp.x").Link("lock.y") },
		"replace nameless":           func() error { return temp(bad, whole.fd, "").Replace("lock.y") },
		"replace":                    func() error { return temp(bad, whole.fd, "temp.x").Replace("lock.y") },
		"withdraw":                   func() error { return temp(bad, whole.fd, "").Withdraw() },
		"touch":                      func() error { _, err := temp(d, -1, "").Touch(); return err },
		"set modified":               func() error { return temp(d, -1, "").setModified(time.Now()) },
		"sweep":                      func() error { return bad.Sweep(time.Now()) },
		"sweep one":                  func() error { return bad.sweepOne("temp.x", time.Now()) },
		"guard, no file":             func() error { return noFile().Guard(0) },
		"guard, no name":             func() error { return noName().Guard(0) },
		"remove":                     func() error { return noName().Remove() },
		"append, no file":            func() error { return noFile().AppendCommand(member(20)) },
		"append, to read":            func() error { return onlyToRead(t, d).AppendCommand(member(20)) },
		"survivors, to read":         func() error { return onlyToRead(t, d).AppendSurvivors(members) },
		"withdraw, no file":          func() error { return (&Active{file: file{dir: d, fd: -1}, whole: 1}).Withdraw() },
		"survivors, no file":         func() error { return noFile().AppendSurvivors(members) },
		"truncate":                   func() error { return noFile().truncate(0) },
		"read":                       func() error { _, err := noFile().read(); return err },
		"load":                       func() error { return noFile().load() },
		"stat":                       func() error { return noFile().stat() },
		"write":                      func() error { return noFile().write([]byte("x")) },
		"named":                      func() error { _, err := noName().named(); return err },
		"flock":                      func() error { _, err := noFile().flock(0); return err },
		"a lock to be opened":        func() error { _, err := bad.openFile("lock.x", unix.O_RDONLY); return err },
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", claim)
		}
	}
	if a := active(t, d); a.Content != record.Full || a.Appended.Command.PID != 0 || len(a.Appended.Survivors) > 0 {
		t.Errorf("the lock has changed: %+v", a.Appended)
	}
}

// An unfinished line cannot be cut off through a read-only descriptor, so nothing may be appended
// behind it.
func TestNothingIsAppendedBehindALineThatCannotBeCutOff(t *testing.T) {
	d := newDir(t)
	must(t, os.WriteFile(d.Path("lock.x"), append(fullRecord().Bytes(), "surv"...), 0o600))
	if err := onlyToRead(t, d).AppendCommand(member(20)); err == nil {
		t.Error("no error")
	}
}

func TestMarkedReportsTheFailureOfWhatItCalls(t *testing.T) {
	d := newDir(t)
	failed := errors.New("failed")
	do := func() error { return failed }
	if err := d.Marked("x", do); !errors.Is(err, failed) {
		t.Errorf("without readers: %v", err)
	}
	must(t, d.MarkRead("x"))
	if err := d.Marked("x", do); !errors.Is(err, failed) {
		t.Errorf("with readers: %v", err)
	}
	must(t, os.Remove(d.Path("read.x")))
	must(t, os.Mkdir(d.Path("read.x"), 0o700))
	if err := d.Marked("x", do); !errors.Is(err, failed) {
		t.Errorf("with a directory as the mark: %v", err)
	}
	must(t, os.Chmod(d.path, 0o700))
	if err := d.MarkRead("x"); err == nil {
		t.Error("a directory is taken for the mark")
	}
}

// openFiles counts this process's descriptors.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

func TestNothingStaysOpen(t *testing.T) {
	path := t.TempDir()
	must(t, os.Chmod(path, 0o700))
	lax := t.TempDir()
	must(t, os.Chmod(lax, 0o777))
	swept := func(d *Dir) {
		must(t, os.WriteFile(d.Path("temp."+record.NewToken()), nil, 0o600))
		must(t, d.Sweep(time.Now().Add(time.Hour)))
	}
	for claim, call := range map[string]func(d *Dir){
		"a directory":                  func(*Dir) { d, err := Open(path); must(t, err); must(t, d.Close()) },
		"a directory of all":           func(*Dir) { Open(lax) },
		"a lock":                       func(d *Dir) { a, err := d.Active("x"); must(t, err); must(t, a.Close()) },
		"another's lock":               func(d *Dir) { d.LockOf(member(1), atom.File{Kind: atom.ActiveLock, Name: "x"}, 0) },
		"a lock that others may write": func(d *Dir) { must(t, os.Chmod(d.Path("lock.x"), 0o660)); d.Active("x") },
		"a lock that is too large":     func(d *Dir) { a, err := d.Active("large"); must(t, err); must(t, a.Close()) },
		"a last lock":                  func(d *Dir) { d.Last("x") },
		"a last lock's age":            func(d *Dir) { d.LastChanged("x") },
		"a stamp":                      func(d *Dir) { must(t, d.Stamp("x", record.Memory{})) },
		"a stamp anew":                 func(d *Dir) { must(t, d.RemoveLast("z")); must(t, d.Stamp("z", record.Memory{})) },
		"a memory":                     func(d *Dir) { must(t, d.Remember("x", time.Now(), record.Memory{Started: time.Now()})) },
		"a mark":                       func(d *Dir) { must(t, d.MarkRead("x")); must(t, d.Marked("x", func() error { return nil })) },
		"files":                        func(d *Dir) { d.Files() },
		"the holder of a guard":        func(d *Dir) { a, err := d.Active("x"); must(t, err); a.GuardHolder(); must(t, a.Close()) },
		"a temporary file":             func(d *Dir) { temp, err := d.TempFile(nil); must(t, err); temp.Discard() },
		"a temporary file too large":   func(d *Dir) { withoutRoom(t, func() { d.TempFile(make([]byte, 1<<16)) }) },
		"debris":                       swept,
	} {
		t.Run(claim, func(t *testing.T) {
			d := newDir(t)
			put(t, d, fullRecord())
			must(t, d.MakeLast("x", record.Memory{}))
			must(t, os.WriteFile(d.Path("lock.large"), nil, 0o600))
			must(t, os.Truncate(d.Path("lock.large"), 1<<40))
			call(d)
			before := openFiles(t)
			for range 20 {
				call(d)
			}
			if after := openFiles(t); after >= before+20 { // other tests may have opened a few meanwhile
				t.Errorf("%d files were open, then %d", before, after)
			}
		})
	}
}

// eachUse has the uses of a directory with a lock, a last lock and the readers' mark of one atom.
var eachUse = map[string]func(d *Dir) error{
	"guard": func(d *Dir) error {
		a, err := d.Active(reads)
		if err != nil {
			return err
		}
		return errors.Join(a.Guard(0), a.Close())
	},
	"remove": func(d *Dir) error {
		a, err := d.Active(reads)
		if err != nil {
			return err
		}
		return errors.Join(a.Remove(), a.Close())
	},
	"the locks of an owner": func(d *Dir) error {
		held, err := d.LocksOf([]process.Identity{fullRecord().Owner}, atom.File{}, 0)
		for _, a := range held {
			a.Close()
		}
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
	"remove last":  func(d *Dir) error { return d.RemoveLast(reads) },
	"mark read":    func(d *Dir) error { return d.MarkRead(reads) },
	"marked":       func(d *Dir) error { return d.Marked(reads, func() error { return nil }) },
	"readers":      func(d *Dir) error { _, err := d.Readers(reads); return err },
	"link":         func(d *Dir) error { return d.placed((*TempFile).Link, "lock.p.h.o.y") },
	"replace":      func(d *Dir) error { return d.placed((*TempFile).Replace, "lock."+reads) },
	"touch": func(d *Dir) error {
		return d.placed(func(t *TempFile, _ string) error { _, err := t.Touch(); return err }, "")
	},
	"sweep":  func(d *Dir) error { return d.Sweep(time.Now().Add(time.Hour)) },
	"a tick": func(d *Dir) error { _, err := d.HasTick(reads, tick(1)); return err },
	"ticks":  func(d *Dir) error { return d.RemoveTicks(reads) },
}

func (d *Dir) placed(place func(*TempFile, string) error, name string) error {
	temp, err := d.TempFile(fullRecord().Bytes())
	if err != nil {
		return err
	}
	defer temp.Discard()
	return place(temp, name)
}

// Whichever call fails, the error is reported and no file stays open.
func TestNoFailureIsSwallowed(t *testing.T) {
	calls := map[string]int{
		"openat": unix.SYS_OPENAT, "newfstatat": unix.SYS_NEWFSTATAT, "fstat": unix.SYS_FSTAT, "flock": unix.SYS_FLOCK, "pread": unix.SYS_PREAD64,
		"write": unix.SYS_WRITE, "fchmod": unix.SYS_FCHMOD, "linkat": unix.SYS_LINKAT, "renameat": unix.SYS_RENAMEAT, "unlinkat": unix.SYS_UNLINKAT,
		"utimensat": unix.SYS_UTIMENSAT, "getdents": unix.SYS_GETDENTS64,
	}
	for claim, use := range eachUse {
		for call, number := range calls {
			for n, met := 1, true; met; n++ {
				d := newDir(t)
				must(t, os.WriteFile(d.Path("lock."+reads), fullRecord().Bytes(), 0o600))
				must(t, d.MakeLast(reads, record.Memory{}))
				must(t, d.MarkRead(reads))
				must(t, os.WriteFile(d.Path("temp."+record.NewToken()), nil, 0o600))
				must(t, os.WriteFile(d.Path(tickFile(reads, 1)), nil, 0o600))
				before := openFiles(t)
				met = false
				var err error
				seen := 0
				intercept.Run(t, func() { err = use(d) }, func(c intercept.Call) unix.Errno {
					if number == unix.SYS_FLOCK && c.FD(1) == unix.LOCK_UN { // closing unlocks anyway
						return 0
					}
					if seen++; seen != n {
						return 0
					}
					met = true
					return unix.EIO
				}, number)
				if left := openFiles(t) - before; left != 0 {
					t.Errorf("%s, %s %d: %d files are left open", claim, call, n, left)
				}
				if told := fault.KindOf(err) == fault.IO; told != met {
					t.Errorf("%s, %s %d: %v", claim, call, n, err)
				}
			}
		}
	}
}

// FUSE has no files without a name, old kernels do not know the flag, and without /proc such a
// file cannot get a name.
func TestWithoutTmpfilesATemporaryFileHasAName(t *testing.T) {
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
			must(t, err)
			if !temp.Named() {
				t.Errorf("%v: it has no name", number)
			}
			must(t, temp.Link("lock.x"))
			temp.Discard()
			active(t, d).Close()
			mustHold(t, d, "lock.x")
			if left := openFiles(t) - before; left != 0 {
				t.Errorf("%v: %d files are left open", number, left)
			}
		}
	}
}

// withoutRoom limits files to one page, like a full disk.
func withoutRoom(t *testing.T, call func()) {
	t.Helper()
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	limited := before
	limited.Cur = 4096
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited))
	defer func() { must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }()
	call()
}

func TestATemporaryFileThatDoesNotFitIsAnErrorAndLeavesNothing(t *testing.T) {
	d := newDir(t)
	withoutRoom(t, func() {
		if temp, err := d.TempFile(make([]byte, 1<<16)); err == nil {
			temp.Discard()
			t.Error("no error")
		}
		large, err := record.ParseMemory([]byte("x=" + string(make([]byte, 1<<16)) + "\n"))
		must(t, err)
		if err := d.MakeLast("x", large); err == nil {
			t.Error("a last lock: no error")
		}
	})
	mustHold(t, d)
}

func TestTheHolderIsTheProcessWithTheFlockOfThisInode(t *testing.T) {
	d := newDir(t)
	put(t, d, fullRecord())
	must(t, d.MakeLast("x", record.Memory{}))
	a := active(t, d)
	last, err := os.OpenFile(d.Path("last.x"), os.O_RDWR, 0)
	must(t, err)
	defer last.Close()
	must(t, unix.Flock(int(last.Fd()), unix.LOCK_EX))
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	must(t, unix.FcntlFlock(uintptr(a.fd), unix.F_SETLK, &lock)) // of another kind
	if holder := a.GuardHolder(); holder != 0 {
		t.Errorf("%d holds the guard", holder)
	}
	other := active(t, d)
	must(t, other.Guard(0))
	if holder := a.GuardHolder(); holder != os.Getpid() {
		t.Errorf("%d holds the guard", holder)
	}
}

func TestAnotherUsersDirectoryMayNotHoldAThirdUsersFile(t *testing.T) {
	need.Root(t)
	path := t.TempDir()
	must(t, os.Chmod(path, 0o700))
	d, err := Open(path)
	must(t, err)
	defer d.Close()
	put(t, d, fullRecord())
	foreign := &Dir{path: d.path, fd: d.fd, uid: 4711} // as when root reads a user's directory
	must(t, os.Chown(d.Path("lock.x"), 4711, 4711))
	a, err := foreign.Active("x")
	if err != nil || a.UID() != 4711 {
		t.Fatalf("a file of the directory's owner: %v", err)
	}
	a.Close()
	must(t, os.Chown(d.Path("lock.x"), 4712, 4712))
	_, err = foreign.Active("x")
	refused(t, "a third user's", err)
}

func TestAFileMayHaveTwoLinksForAMoment(t *testing.T) {
	d := newDir(t)
	put(t, d, fullRecord())
	must(t, os.Link(d.Path("lock.x"), d.Path("temp.x")))
	active(t, d)
	must(t, os.Link(d.Path("lock.x"), d.Path("temp.y")))
	_, err := d.Active("x")
	refused(t, "three links", err)
}

func TestWrapNamesTheFileAndKeepsErrNotExist(t *testing.T) {
	d := newDir(t)
	if err := d.wrap("lock.x", unix.ENOENT); !errors.Is(err, os.ErrNotExist) || fault.KindOf(err) == fault.IO {
		t.Errorf("missing: %v", err)
	}
	var named *os.PathError
	if err := d.wrap("lock.x", unix.ENOENT); !errors.As(err, &named) || named.Path != filepath.Join(d.path, "lock.x") {
		t.Errorf("missing: %#v", err)
	}
	if err := d.wrap("lock.x", unix.EIO); fault.KindOf(err) != fault.IO {
		t.Errorf("broken: %v", err)
	}
}

func TestARefusalToMakeAFileHasItsOwnStatus(t *testing.T) {
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
}

func TestADirectoryIsMadeOnlyWhereItsParentIsOne(t *testing.T) {
	if _, err := Create("/proc/self/nothing/below"); err == nil {
		t.Error("made")
	}
}
