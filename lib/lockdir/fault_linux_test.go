package lockdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
)

// reaching are the calls that are made to fail. (Other calls that reach the lock directory stand
// next to one of these, and their errors take the same path.)
var reaching = map[string]int{
	"openat": unix.SYS_OPENAT, "write": unix.SYS_WRITE, "flock": unix.SYS_FLOCK, "linkat": unix.SYS_LINKAT,
	"renameat": unix.SYS_RENAMEAT, "unlinkat": unix.SYS_UNLINKAT, "utimensat": unix.SYS_UTIMENSAT,
}

// watched runs do, and calls see before each system call of that number that reaches the lock directory.
func watched(t *testing.T, k *Locker, call int, do func(), see func() unix.Errno) {
	t.Helper()
	intercept.Run(t, do, func(c intercept.Call) unix.Errno {
		fd := c.FD(0)
		if call == unix.SYS_LINKAT {
			fd = c.FD(2)
		}
		if !within(k, fd) || call == unix.SYS_FLOCK && c.FD(1) == unix.LOCK_UN { // closing unlocks anyway
			return 0
		}
		return see()
	}, call)
}

// within reports whether a descriptor is of the lock directory or of a file in it.
func within(k *Locker, fd int) bool {
	path, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return path == k.Dir.Path("") || filepath.Dir(path) == k.Dir.Path("")
}

// failing runs do, and makes its n-th system call of that number fail; met is false if there are fewer.
func failing(t *testing.T, k *Locker, call, n int, do func() error) (met bool, err error) {
	t.Helper()
	watched(t, k, call, func() { err = do() }, func() unix.Errno {
		if n--; n != 0 {
			return 0
		}
		met = true
		return unix.EIO
	})
	return met, err
}

// steps are the operations of a Locker, each with its preparation.
func steps(t *testing.T, k *Locker, owner, gone process.Identity) map[string]func() (do func() error) {
	taken := func(requests ...locker.Request) (last locker.Outcome) {
		t.Helper()
		for _, r := range requests {
			last = wantVerdict(t, k, r, locker.Acquired)
		}
		return last
	}
	before := gone
	before.PID = owner.PID
	hung := func() locker.Request { return limited(sleeper(t)) }
	expiring := limited(owner)
	expiring.Limits.ExpireAfter = 0
	command := func(held locker.Outcome) func() error {
		return func() error { return k.RecordCommand(motdFiles, held.Token, gone) }
	}
	prune := func() error { _, err := k.Prune(0); return err }
	forget := func() error { return k.Forget(motdFiles) }
	stop := func() error {
		return k.Stop(&locker.Request{Owner: owner, Pause: 100 * time.Millisecond}, motdLock, false)
	}
	return map[string]func() func() error{
		"take what is free":            func() func() error { return taking(k, limited(owner)) },
		"take what completed long ago": func() func() error { completed(t, k, owner); return taking(k, limited(owner)) },
		"take a dead owner's":          func() func() error { taken(limited(gone)); return taking(k, limited(owner)) },
		"take an expired owner's":      func() func() error { taken(hung()); return taking(k, expiring) },
		"take what a dead reader had": func() func() error {
			taken(sharing(limited(gone)))
			return taking(k, limited(owner))
		},
		"take what an expired reader has": func() func() error { taken(sharing(hung())); return taking(k, expiring) },
		"take what was left empty": func() func() error {
			plant(t, k, "", time.Hour)
			plantFile(t, k, motd.Slot(1).ActiveLock(), "", time.Hour)
			return taking(k, limited(owner))
		},
		"read": func() func() error { return taking(k, sharing(limited(owner))) },
		"read what a dead reader of the same pid had": func() func() error {
			taken(sharing(limited(before)))
			return taking(k, sharing(limited(owner)))
		},
		"share a slot": func() func() error { taken(slotted(owner, "outer", 2)); return taking(k, limited(owner)) },
		"release":      func() func() error { return releasing(k, taken(limited(owner))) },
		"release what another atom shares": func() func() error {
			return releasing(k, taken(slotted(owner, "outer", 2), limited(owner)))
		},
		"release a reader's":                  func() func() error { return releasing(k, taken(sharing(limited(owner)))) },
		"release a reader's beside another's": func() func() error { return releasing(k, besideAnother(t, k, owner, gone)) },
		"release a dead reader's two locks": func() func() error {
			held := taken(sharing(limited(owner)))
			plant(t, k, contentOf(t, k, readerLock(owner).String()), 0)
			return releasing(k, held)
		},
		"clear": func() func() error { taken(limited(gone)); return func() error { return k.Clear(motdLock) } },
		"clear a reader's": func() func() error {
			taken(sharing(limited(gone)))
			return func() error { return k.Clear(readerLock(gone)) }
		},
		"prune":                      func() func() error { completed(t, k, owner); return prune },
		"prune beside one that runs": func() func() error { taken(ask(owner)); return prune },
		"end": func() func() error {
			taken(hung())
			return func() error { return endOwner(k, motdFiles, 100*time.Millisecond) }
		},
		"stop":                 func() func() error { taken(hung()); return stop },
		"forget":               func() func() error { completed(t, k, owner); return forget },
		"forget while it runs": func() func() error { taken(ask(owner)); return forget },
		"record a command":     func() func() error { return command(taken(limited(owner))) },
		"record a reader's command beside another's": func() func() error {
			return command(besideAnother(t, k, owner, gone))
		},
		"record a reader's members": func() func() error {
			held := taken(sharing(limited(owner)))
			return func() error { return k.RecordMembers(motdFiles, held.Token, []process.Identity{gone}) }
		},
		"ask whether it is being ended": func() func() error {
			held := taken(ask(owner))
			return func() error {
				ending, err := k.BeingEnded(motdFiles, held.Token)
				if ending {
					return errors.New("no newcomer is ending it")
				}
				return err
			}
		},
		"list": func() func() error {
			taken(ask(owner))
			return func() error {
				entries, err := k.List()
				for _, entry := range entries {
					err = errors.Join(err, entry.Err)
				}
				return err
			}
		},
		"foretell":                 func() func() error { taken(ask(owner)); return foretelling(k, ask(gone)) },
		"foretell beside a reader": func() func() error { taken(sharing(ask(owner))); return foretelling(k, ask(gone)) },
	}
}

func foretelling(k *Locker, r locker.Request) func() error {
	return func() error { _, _, err := inWords(DryRun(k.Dir.Path(""), &r)); return err }
}

// limited is a request with an IfElapsed and a limit on slots, so that all checks are made.
func limited(owner process.Identity) locker.Request {
	r := slotted(owner, motd.Operand, 2)
	r.Limits.IfElapsed = time.Minute
	return r
}

// besideAnother makes the owner a reader among others while another reader's active lock is in place.
func besideAnother(t *testing.T, k *Locker, owner, another process.Identity) locker.Outcome {
	t.Helper()
	wantVerdict(t, k, sharing(ask(another)), locker.Acquired)
	held := wantVerdict(t, k, sharing(limited(owner)), locker.Acquired)
	wantVerdict(t, k, sharing(ask(self(t))), locker.Acquired)
	r := ask(another)
	temp, record, err := k.prepareLock(&r, &view{})
	must.Do(t, err)
	temp.Discard()
	plant(t, k, string(record.Bytes()), 0)
	return held
}

func sharing(r locker.Request) locker.Request {
	r.Shared = true
	return r
}

func taking(k *Locker, r locker.Request) func() error {
	return func() error {
		outcome, err := k.Take(r)
		if err == nil && outcome.Verdict != locker.Acquired {
			return fmt.Errorf("verdict is %q (%s)", outcome.Verdict, outcome.Reason)
		}
		return err
	}
}

func releasing(k *Locker, held locker.Outcome) func() error {
	return func() error { return k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token}) }
}

// completed runs the atom, and dates its completion an hour ago.
func completed(t *testing.T, k *Locker, owner process.Identity) {
	t.Helper()
	release(t, k, wantVerdict(t, k, ask(owner), locker.Acquired))
	setLast(t, k, time.Now().Add(-time.Hour))
}

func contentOf(t *testing.T, k *Locker, file string) string {
	t.Helper()
	content := must.Get(os.ReadFile(k.Dir.Path(file)))(t)
	return string(content)
}

// openFiles counts the descriptors of the lock directory and its files.
func openFiles(t *testing.T, k *Locker) (n int) {
	t.Helper()
	list := must.Get(os.ReadDir("/proc/self/fd"))(t)
	for _, entry := range list {
		if fd, _ := strconv.Atoi(entry.Name()); within(k, fd) {
			n++
		}
	}
	return n
}

func TestEachFailedSystemCallIsReported(t *testing.T) {
	owner, gone := sleeper(t), dead(t)
	for name := range steps(t, nil, owner, gone) {
		for call, number := range reaching {
			for n, met := 1, true; met; n++ {
				k := unlogged(t)
				do := steps(t, k, owner, gone)[name]()
				before := openFiles(t, k)
				var err error
				met, err = failing(t, k, number, n, do)
				if left := openFiles(t, k) - before; left != 0 {
					t.Errorf("%s, %s %d: %d files are left open", name, call, n, left)
				}
				if told := fault.KindOf(err) == fault.IO && strings.Contains(err.Error(), unix.EIO.Error()); told != met {
					t.Errorf("%s, %s %d: %v", name, call, n, err)
				}
			}
		}
	}
}

func TestALockDamagedOrOfAnotherAtomIsAnErrorAndStays(t *testing.T) {
	k := newLocker(t)
	other := ask(dead(t))
	other.Atom.Operand = "/etc,motd" // of the same name
	whole := other.Record()
	for content, words := range map[string]string{
		"12": "cut short", "x": "cut short", string(whole.Bytes()): "/etc,motd",
	} {
		plant(t, k, content, 0)
		before := openFiles(t, k)
		if err := taking(k, ask(dead(t)))(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", content, err)
		}
		if left := openFiles(t, k) - before; left != 0 {
			t.Errorf("%q: %d files are left open", content, left)
		}
		if kept := contentOf(t, k, "lock."+motdFiles); kept != content {
			t.Errorf("%q became %q", content, kept)
		}
	}
}
