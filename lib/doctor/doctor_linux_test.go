package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/lease/listing"
	"adlock/lib/limit"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestMain(m *testing.M) {
	Main() // the second process of a test is this program
	os.Exit(m.Run())
}

// fit is a machine that passes every check.
func fit(t *testing.T) *Machine {
	t.Helper()
	top := t.TempDir()
	must.Do(t, os.Chmod(top, 0o700))
	m := &Machine{
		Dir: filepath.Join(top, "locks"), Host: "dax",
		Programs: filepath.Join(top, "bin"), CronPath: "/nowhere", Hooked: true, Fleeting: func(string) string { return "" },
	}
	m.LogDir = m.Dir
	must.Do(t, os.Mkdir(m.Dir, 0o700))
	for _, name := range []string{"adlock", "adlock-locksmith"} {
		script(t, filepath.Join(m.Programs, name), 0o755, "#!/bin/sh\n")
	}
	script(t, filepath.Join(top, "lib/adlock/adlock.sh"), 0o644, "# a library\n")
	return m
}

func script(t *testing.T, path string, mode os.FileMode, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(text), mode))
}

// find returns the finding about one thing.
func find(t *testing.T, all []Finding, what string) Finding {
	t.Helper()
	for _, f := range all {
		if f.What == what && (what != "clock" || f.Grade != Fine) {
			return f
		}
	}
	t.Fatalf("nothing was found out of %q: %v", what, all)
	return Finding{}
}

// finds tests that a finding has that grade and contains these words.
func (m *Machine) finds(t *testing.T, what string, grade Grade, words ...string) {
	t.Helper()
	all := m.Examine(time.Now())
	f := find(t, all, what)
	for _, word := range words {
		if f.Grade != grade || !strings.Contains(f.String(), word) {
			t.Errorf("%s %v, want %s with %q", f.Grade, f, grade, word)
		}
	}
	if Fit(all) != (grade != Fail) {
		t.Errorf("fit: %v, where the worst is %s", Fit(all), grade)
	}
}

func TestTheDoctorPassesAFitMachineAndLeavesNoFiles(t *testing.T) {
	m := fit(t)
	for _, f := range m.Examine(time.Now()) {
		if f.What == "machine id" && process.Here().Machine == "" {
			t.Log("this machine has no id")
			continue
		}
		if f.Grade != Fine {
			t.Errorf("%s %v", f.Grade, f)
		}
	}
	if left, err := os.ReadDir(m.Dir); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTheDoctorDoesNotCreateAMissingLockDirectory(t *testing.T) {
	m := fit(t)
	m.Dir = filepath.Join(m.Dir, "deep", "down")
	m.LogDir = m.Dir
	m.finds(t, "lock directory", Fine, "the first lock makes it")
	m.finds(t, "flock", Fine, "two processes")
	m.finds(t, "runlog", Fine, "made with the lock directory")
	if left, err := os.ReadDir(filepath.Dir(filepath.Dir(m.Dir))); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestATemporaryLockDirectoryIsReportedEvenBehindALink(t *testing.T) {
	m := fit(t)
	real := must.Get(filepath.EvalSymlinks(m.Dir))(t)
	m.Fleeting = func(dir string) string {
		if dir == real {
			return "is cleaned"
		}
		return ""
	}
	m.finds(t, "lock directory", Warn, m.Dir+": is cleaned")
	link := filepath.Join(filepath.Dir(m.Dir), "above")
	must.Do(t, os.Symlink(filepath.Dir(real), link))
	m.Dir = filepath.Join(link, filepath.Base(real))
	m.LogDir = m.Dir
	m.finds(t, "lock directory", Warn, m.Dir+": is cleaned")
	m.Fleeting = fit(t).Fleeting
	m.finds(t, "lock directory", Fine, m.Dir)
}

func TestTheDoctorReportsDamagedActiveAndLastLocks(t *testing.T) {
	m := fit(t)
	for i := range 7 {
		must.Do(t, os.WriteFile(filepath.Join(m.Dir, "lock.p.dax.run.x"+strconv.Itoa(i)), []byte("1\nx\n"), 0o600))
	}
	m.finds(t, "locks", Warn, "lock.p.dax.run.x0, ", "x4, and 2 more: damaged", "adlock clear FILE")
	m = fit(t)
	must.Do(t, os.WriteFile(filepath.Join(m.Dir, "last.p.dax.run.x"), []byte("\x00\x00"), 0o600))
	m.finds(t, "last locks", Warn, "last.p.dax.run.x: damaged, and count as never completed")
	must.Do(t, os.Remove(filepath.Join(m.Dir, "last.p.dax.run.x")))
	must.Do(t, os.Mkdir(filepath.Join(m.Dir, "last.p.dax.run.x"), 0o700))
	m.finds(t, "last locks", Warn, "last.p.dax.run.x")
	m = fit(t)
	for name, text := range map[string]string{"lock.p.dax.run.x": "1\n", "last.p.dax.run.x": ""} { // as of shlock(1), and of a run
		must.Do(t, os.WriteFile(filepath.Join(m.Dir, name), []byte(text), 0o600))
	}
	for _, f := range m.Examine(time.Now()) {
		if f.What == "locks" || f.What == "last locks" {
			t.Errorf("%v", f)
		}
	}
}

func TestTheDoctorReportsAMissingMailer(t *testing.T) {
	m := fit(t)
	mailer := filepath.Join(m.Programs, "sendmail")
	m.Mailers, m.Hooked = []string{"/nowhere/sendmail", mailer}, false
	m.finds(t, "mail", Warn, "/nowhere/sendmail, "+mailer+": not there", "ADLOCK_HOOK")
	must.Do(t, os.WriteFile(mailer, nil, 0o644))
	m.finds(t, "mail", Warn, "told to nobody")
	m.Hooked = true
	m.finds(t, "mail", Fine, "by a hook or the system's log")
	m.Hooked = false
	must.Do(t, os.Chmod(mailer, 0o755))
	m.finds(t, "mail", Fine, mailer+" is there")
}

func TestDoctorFailsAnUnsafeLockDirectory(t *testing.T) {
	m := fit(t)
	must.Do(t, os.Chmod(m.Dir, 0o777))
	m.finds(t, "lock directory", Fail, "chmod go-w")
	must.Do(t, os.Remove(m.Dir))
	must.Do(t, os.WriteFile(m.Dir, nil, 0o600))
	m.finds(t, "lock directory", Fail, "not a directory")
	must.Do(t, os.Remove(m.Dir))
	must.Do(t, os.Symlink("/nowhere", m.Dir))
	m.finds(t, "lock directory", Fail, "symbolic link")
	m.Dir = "a/relative/one"
	m.finds(t, "lock directory", Fail, "relative")
	m.Dir = "/proc/adlock"
	if all := m.Examine(time.Now()); Fit(all) { // another finding for root, which may write there
		t.Errorf("%s: %v", m.Dir, all)
	}
}

func TestDoctorFailsADirectoryWhereFilesCannotBeRemoved(t *testing.T) {
	dir, _, err := lockfile.OpenToTry(fit(t).Dir)
	must.Do(t, err)
	defer dir.Close()
	var all []Finding
	intercept.Run(t, func() { all = fileSystem(dir, time.Now()) }, func(intercept.Call) unix.Errno { return unix.EPERM }, unix.SYS_UNLINKAT)
	if f := find(t, all, "files"); f.Grade != Fail || !strings.Contains(f.Text, unix.EPERM.Error()) {
		t.Errorf("%s %v", f.Grade, f)
	}
}

func TestDoctorFailsIfTheRunlogCannotBeWritten(t *testing.T) {
	m := fit(t)
	m.LogDir = filepath.Join(m.Dir, "elsewhere")
	m.finds(t, "runlog", Fail, "install -d")
	m.LogDir = m.Dir
	must.Do(t, os.Symlink("/etc/passwd", filepath.Join(m.Dir, "program.dax.runlog")))
	m.finds(t, "runlog", Fail, "program.dax.runlog")
	must.Do(t, os.Remove(filepath.Join(m.Dir, "program.dax.runlog")))
	must.Do(t, os.WriteFile(filepath.Join(m.Dir, "program.dax.runlog"), nil, 0o600))
	m.finds(t, "runlog", Fine, "program.dax.runlog")
}

func TestDoctorFailsALockThatDoesNotExcludeOrIsNotReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	nothing := func() error { return nil }
	if f := exclusion(path, nothing); f.Grade != Fail || !strings.Contains(f.Text, "two processes hold one lock") {
		t.Errorf("an unlocked file: %s %v", f.Grade, f)
	}
	if f := exclusion(filepath.Join(path, "none"), nothing); f.Grade != Fail {
		t.Errorf("no file: %s %v", f.Grade, f)
	}
	if got := try(path); got != "" { // held by this process from now on
		t.Fatal(got)
	}
	if f := exclusion(path, nothing); f.Grade != Fail || !strings.Contains(f.Text, "held by no process") {
		t.Errorf("a lock that is not released: %s %v", f.Grade, f)
	}
}

func TestTheDoctorReportsLastLocksInTheFuture(t *testing.T) {
	m := fit(t)
	for name, at := range map[string]time.Time{
		"last.p.dax.o.early": time.Now().Add(-time.Hour), "last.p.dax.o.soon": time.Now().Add(time.Hour), "last.p.dax.o.late": time.Now().Add(25 * time.Hour),
	} {
		path := filepath.Join(m.Dir, name)
		must.Do(t, os.WriteFile(path, nil, 0o600))
		must.Do(t, os.Chtimes(path, at, at))
	}
	m.finds(t, "clock", Warn, "2 of 3 last locks", "p.dax.o.late", "1d")
}

func TestTheDoctorMeasuresTheResolutionOfFileTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	kept, err := resolution(path)
	if err != nil || kept <= 0 || kept > 2*time.Second {
		t.Errorf("%v, %v", kept, err)
	}
	for at, want := range map[time.Time]time.Duration{
		time.Unix(1, 111111111): time.Nanosecond, time.Unix(1, 111111100): 100 * time.Nanosecond,
		time.Unix(1, 111111000): time.Microsecond, time.Unix(1, 110000000): 10 * time.Millisecond,
		time.Unix(1, 0): time.Second, time.Unix(2, 0): 2 * time.Second,
	} {
		if got := unitOf(at); got != want {
			t.Errorf("%v: %v, want %v", at, got, want)
		}
	}
}

func TestTheDoctorReportsMissingPrograms(t *testing.T) {
	m := fit(t)
	smith, adlock := filepath.Join(m.Programs, "adlock-locksmith"), filepath.Join(m.Programs, "adlock")
	m.finds(t, "adlock-locksmith", Fine, smith)
	must.Do(t, os.Remove(smith))
	m.finds(t, "adlock-locksmith", Fine, "not installed")
	m.Remote = "etcd://a:2379/p"
	m.finds(t, "adlock-locksmith", Fail, smith, "no such file", "make install")
	m.Remote = ""
	must.Do(t, os.Remove(adlock))
	m.finds(t, "adlock", Fail, adlock, "no such file")
}

func TestTheDoctorReportsAFailingStoreAndASkewedClock(t *testing.T) {
	m, trial := fit(t), listing.Trial{}
	failed := error(fault.New(fault.Unavailable, "etcd://a:2379/p", "connection refused"))
	m.Remote, m.TryStore = "etcd://a:2379/p", func() (listing.Trial, error) { return trial, failed }
	m.finds(t, "store", Fail, "etcd://a:2379/p: connection refused")
	trial.Answer = time.Millisecond
	m.finds(t, "lease", Fail, "connection refused")
	trial.Lease, failed = 15*time.Second, nil
	m.finds(t, "store", Fine, "after 1ms")
	m.finds(t, "lease", Fine, "one of 15s")
	m.finds(t, "store clock", Fine)
	trial.Ahead = -time.Minute
	m.finds(t, "store clock", Warn, "1m behind")
}

func TestTheDoctorFindsTheLibraryAndChecksTheShell(t *testing.T) {
	m := fit(t)
	lib := filepath.Join(filepath.Dir(m.Programs), "lib/adlock")
	m.finds(t, "adlock.sh", Fine, lib+"/adlock.sh")
	m.finds(t, "shell", Fine, "not installed")
	script(t, lib+"/shell", 0o755, "#!/bin/sh\n")
	m.finds(t, "shell", Fine, "say SHELL="+lib+"/shell")
	must.Do(t, os.Chmod(lib+"/shell", 0o644))
	m.finds(t, "shell", Fail, lib+"/shell", "chmod 755")
}

func TestTheDoctorReportsServicesThatLackSettings(t *testing.T) {
	dir := t.TempDir()
	unit := func(name, more string) string {
		path := filepath.Join(dir, name)
		text := "[Service]\nExecStart=/usr/bin/adlock run --name x -- /bin/grep -E x y\n" + more
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := unit("good.service", "SuccessExitStatus=75\nKillMode=mixed") // without a line feed
	other := unit("other.service", "KillMode = mixed \r\nSuccessExitStatus=3 TEMPFAIL\n")
	set := unit("set.service", "KillMode=mixed\nEnvironment=ADLOCK_EXIT_DENIED=0\n")
	said := unit("said.service", "KillMode=mixed\nExecStartPre=adlock run --name y \\\n --exit-denied=0 -- z\n")
	split := unit(`a\x2db.service`, "KillMode=mixed\n")
	script(t, split+".d/10.conf", 0o644, "[Service]\nSuccessExitStatus=75\n")
	if all := (&Machine{Services: []string{good, other, set, said, split}}).services(); len(all) != 1 || all[0].Grade != Fine {
		t.Errorf("%v", all)
	}
	bad := unit("bad.service", "# SuccessExitStatus=75\n")
	all := (&Machine{Services: []string{good, bad}}).services()
	if len(all) != 2 || !strings.Contains(all[0].String(), "bad.service has no KillMode=mixed") || !strings.Contains(all[1].String(), "add SuccessExitStatus=75") {
		t.Errorf("%v", all)
	}
	if all := (&Machine{Services: []string{filepath.Join(dir, "none.service")}}).services(); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

func TestTheDoctorReportsWhichHelperCronFinds(t *testing.T) {
	m := fit(t)
	m.finds(t, "cron", Fine, "say "+filepath.Join(m.Programs, "adlock"), m.CronPath)
	m.CronPath = "/nowhere:" + m.Programs
	m.finds(t, "cron", Fine, "has "+filepath.Join(m.Programs, "adlock"))
	another := t.TempDir()
	script(t, filepath.Join(another, "adlock"), 0o755, "#!/bin/sh\n")
	m.CronPath = another + ":" + m.Programs
	m.finds(t, "cron", Warn, another)
}

func TestTheDoctorReportsOldAndDamagedPauses(t *testing.T) {
	before := locker.PauseFile
	t.Cleanup(func() { locker.PauseFile = before })
	locker.PauseFile = filepath.Join(t.TempDir(), "adlock.pause")
	m := fit(t)
	old := record.NewPause(limit.Never, "disk")
	old.Since = old.Since.Add(-48 * time.Hour)
	text := strings.Replace(string(old.Bytes()), process.Here().Boot, "another-boot", 1)
	script(t, filepath.Join(m.Dir, "last.adlock.dax.run.x"), 0o600, text)
	m.finds(t, "pause", Warn, "adlock.dax.run.x: paused: until it is resumed (disk); began 2d ago; adlock resume adlock.dax.run.x")
	must.Do(t, os.Remove(filepath.Join(m.Dir, "last.adlock.dax.run.x")))
	need.Root(t)
	script(t, locker.PauseFile, 0o644, text)
	m.finds(t, "pause", Warn, "all jobs of this host: paused: ", "adlock resume --all")
	script(t, locker.PauseFile, 0o644, "x")
	m.finds(t, "pause", Fail, locker.PauseFile, "adlock resume --all")
}
