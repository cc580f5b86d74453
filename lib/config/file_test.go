package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/test/support/must"
)

// written writes the texts to this user's settings files: the first to the file of all users, the
// second to the user's own.
func written(t *testing.T, texts ...string) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o700))
	for i, text := range texts {
		path := filepath.Join(dir, []string{"all.conf", "own.conf"}[i])
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		paths = append(paths, path)
	}
	reread(t, paths...)
	return paths
}

// reread makes the package read these files instead of the real ones.
func reread(t *testing.T, paths ...string) {
	t.Helper()
	for _, name := range []string{dirVariable, storeVariable, logDirVariable, logMaxVariable} {
		t.Setenv(name, "")
	}
	files = func() (all []*File) {
		for _, path := range paths {
			if f := readFile(path); f != nil {
				all = append(all, f)
			}
		}
		return all
	}
	read := files()
	files = func() []*File { return read }
	t.Cleanup(Reread)
}

// values are the options whose setters check the values in the files.
func values() []Option {
	s := Defaults()
	return append(s.Options(), Bind("slots", Number(new(int), 0, 9)))
}

// mistaken are the mistakes, as text.
func mistaken() (text string) {
	for _, err := range Mistakes(values) {
		text += err.Error() + "\n"
	}
	return text
}

const backup = atom.Name("adlock.h.run.backup")

func TestLaterFilesLaterPatternsAndExactSectionsWin(t *testing.T) {
	paths := written(t, `
# a comment
[backup]
ADLOCK_WAIT = 4m
[adlock.*.run.b*]
ADLOCK_WAIT=3m
ADLOCK_STARVING=3
[adlock.*]
ADLOCK_STARVING=2
ADLOCK_NOTICE=2h
`, "ADLOCK_NOTICE=\nADLOCK_PAUSE=9s\nADLOCK_SLOTS=4\n[adlock.h.run.backup]\nADLOCK_PAUSE=5s\n")
	got := FromFiles(backup)
	for name, want := range map[string][2]string{
		"ADLOCK_WAIT": {"4m", paths[0] + ":4"}, "ADLOCK_STARVING": {"2", paths[0] + ":9"},
		"ADLOCK_NOTICE": {"", paths[1] + ":1"}, "ADLOCK_PAUSE": {"5s", paths[1] + ":5"}, "ADLOCK_SLOTS": {"", ""}, // two runs of a --name would run at once
	} {
		if f := got[name]; f.Value != want[0] || f.From.Word != want[1] {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if other := FromFiles("p.h.run.backup"); len(other) != 3 || other["ADLOCK_PAUSE"].Value != "9s" || other["ADLOCK_SLOTS"].Value != "4" {
		t.Error(other)
	}
	if text := mistaken(); text != "" {
		t.Error(text)
	}
}

func TestEnvironmentAndOptionsWinOverASettingsFile(t *testing.T) {
	written(t, "ADLOCK_WAIT=1m\nADLOCK_IF_ELAPSED=2\nADLOCK_EXPIRE_AFTER=3h\nADLOCK_SHARED=1\nADLOCK_STARVING=5")
	s := Defaults()
	getenv := func(name string) string { return map[string]string{"ADLOCK_WAIT": "2m"}[name] }
	options := s.Options()
	must.Get(s.From.ParseIn(getenv, append(options, s.From.Setting(options)),
		[]string{"--starving", "7", "--setting=ADLOCK_SHARED=0"}))(t)
	s.Request.Atom = atom.Named("backup", "h")
	must.Do(t, s.Configure(options, values))
	r := s.Request
	if r.Wait != 2*time.Minute || r.Starving != 7 || r.Shared || r.Limits != (policy.Limits{IfElapsed: 2 * time.Minute, ExpireAfter: 3 * time.Hour, Source: policy.Filed}) {
		t.Errorf("%+v", r)
	}
}

func TestALineWithAMistakeIsReportedAndIgnored(t *testing.T) {
	path := written(t, `ADLOCK_WAIT=5
ADLOCK_WIAT=5m
what
ADLOCK_BIN=/bin/true
ADLOCK_NAME=x
[
ADLOCK_PAUSE=1s
[a]
ADLOCK_LOG_MAX=5
ADLOCK_SLOTS=x
ADLOCK_NOTICE=1h
ADLOCK_IF_ELAPSED
[back?p-[12]]
[/srv/*]
[*.run.[^/]*]
`)[0]
	text := mistaken()
	for _, want := range []string{
		":2: unknown setting: did you mean ADLOCK_WAIT?", ":3: want ADLOCK_X=VALUE", ":4: ADLOCK_BIN cannot be set in a file",
		":5: ADLOCK_NAME cannot", ":6: want [NAME]", ":9: ADLOCK_LOG_MAX belongs above", ":10: ADLOCK_SLOTS: ", `:1: ADLOCK_WAIT: `, ":12: want ADLOCK_X=VALUE",
		":13: no NAME matches this pattern", ":14: no NAME matches",
	} {
		if !strings.Contains(text, path+want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Count(text, "\n") != 11 {
		t.Error(text)
	}
	if got := FromFiles("adlock.h.run.a"); len(got) != 1 || got["ADLOCK_NOTICE"].Value != "1h" {
		t.Error(got)
	}
	must.Get(Dir())(t)
}

func TestABadLeaseIsReportedAndIgnored(t *testing.T) {
	for value, want := range map[string]string{"2h": "want at least 6s", "5s": "want at least 6s", "x": "bad duration", "7s": ""} {
		path := written(t, "ADLOCK_LEASE="+value)[0]
		if text := mistaken(); !strings.HasPrefix(text, path+":1: ADLOCK_LEASE has a bad value: ") && want != "" || !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("%s: %s", value, text)
		}
		if kept := Lease(); (kept == value) != (want == "") {
			t.Errorf("%s: %q", value, kept)
		}
	}
}

func TestAMistakeInALocationSettingIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"ADLOCK_DIR=locks": ":1: ADLOCK_DIR wants a full path", "ADLOCK_STORE=/locks": ":1: ADLOCK_STORE wants etcd",
		"ADLOCK_STORE=foo://u@h/p": ":1: ADLOCK_STORE wants etcd", "ADLOCK_STORE=etcd://": ":1: ADLOCK_STORE wants etcd", "ADLOCK_STORE=etcd://u:x@h:1/p": ":1: ADLOCK_STORE wants etcd",
		"ADLOCK_STORE=ftp://h/": ":1: ADLOCK_STORE wants etcd", "ADLOCK_STORE=ftps://u@/d": ":1: ADLOCK_STORE wants etcd", "ADLOCK_STORE=ftp://u:x@h/d": ":1: ADLOCK_STORE wants etcd",
		"[a]\nADLOCK_LOGDIR=/a": ":2: ADLOCK_LOGDIR belongs above", "ADLOCK_DRI=/a": ":1: unknown setting: did you mean ADLOCK_DIR?",
		"[\nADLOCK_DIR=/a": ":2: ADLOCK_DIR belongs above", "ADLOCK_DIR": ":1: want ADLOCK_X=VALUE",
		"ADLOCK_DIR /a": ":1: want ADLOCK_X=VALUE", "ADLOCK_DIR: /a": ":1: want ADLOCK_X=VALUE", "export ADLOCK_DIR=/a": ":1: unknown setting",
		"adlock_dir=/a": ":1: unknown setting", "ADLOCK_LOCK_DIR=/a": ":1: unknown setting", "adlock-store=ftp://a/b": ":1: unknown setting",
	} {
		path := written(t, text)[0]
		if _, err := Dir(); err == nil || !strings.HasPrefix(err.Error(), path+want) {
			t.Errorf("%q: %v", text, err)
		}
		t.Setenv(storeVariable, "/elsewhere")
		if dir, err := Dir(); dir != "/elsewhere" || err != nil {
			t.Error(dir, err)
		}
	}
}

func TestASettingsFileSetsTheDirectories(t *testing.T) {
	written(t, "\ufeffADLOCK_LOGDIR=/b\nADLOCK_DIR=/a\n", "ADLOCK_DIR=/c\nADLOCK_LOG_MAX=77") // a byte order mark is ignored
	dir, err := Dir()
	log, err2 := RunlogOf(dir, "h")
	if dir != "/c" || err != nil || err2 != nil || log.Dir != "/b" || log.Max != 77 {
		t.Error(dir, err, log, err2)
	}
}

func TestASettingsFileThatOthersMayWriteIsNotUsed(t *testing.T) {
	for _, spoil := range []func(path string) error{
		func(path string) error { return os.Chmod(path, 0o620) },
		func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) },
	} {
		path := written(t, "ADLOCK_WAIT=1m")[0]
		must.Do(t, spoil(path))
		reread(t, path)
		if text := mistaken(); len(FromFiles(backup)) != 0 || !strings.HasPrefix(text, path+": is not used: ") || strings.Count(text, "\n") != 1 {
			t.Error(FromFiles(backup), text)
		}
		must.Get(Dir())(t) // it names no location
	}
}

func TestAMissingSettingsFileIsNotListed(t *testing.T) {
	path := written(t, "")[0]
	reread(t, path+".none", path+"/none", path+".none/none")
	if all := Files(); len(all) != 0 {
		t.Error(all)
	}
}

// What cannot be read may name a location.
func TestAnUnreadableSettingsFileIsAnError(t *testing.T) {
	for claim, hide := range map[string]func(path string) error{
		"a directory":       func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":            func(path string) error { return unix.Mkfifo(path, 0o600) },
		"too large":         func(path string) error { return os.WriteFile(path, make([]byte, mostOfFile+1), 0o600) },
		"a dangling link":   func(path string) error { return os.Symlink("none", path) },
		"a circle of links": func(path string) error { return os.Symlink(path, path) },
	} {
		path := written(t, "")[0] + "2"
		must.Do(t, hide(path))
		reread(t, path)
		if _, err := Dir(); fault.KindOf(err) != fault.Misconfigured || !strings.HasPrefix(err.Error(), path+": is not used: ") || mistaken() != err.Error()+"\n" {
			t.Error(claim, err, mistaken())
		}
	}
}

func TestASettingsDirectoryThatIsADanglingLinkIsAnError(t *testing.T) {
	dir := t.TempDir() + "/config"
	must.Do(t, os.Symlink("none", dir))
	reread(t, dir+"/adlock.conf")
	if _, err := Dir(); fault.KindOf(err) != fault.Misconfigured {
		t.Error(err)
	}
}

func TestASettingsFileBehindSafeLinksIsUsed(t *testing.T) {
	path := written(t, "ADLOCK_DIR=/a")[0]
	dir := filepath.Dir(path)
	must.Do(t, errors.Join(os.Mkdir(dir+"/d", 0o700), os.Symlink("../all.conf", dir+"/d/two"),
		os.Symlink(dir+"/d/two", dir+"/one")))
	reread(t, dir+"/one")
	if where, err := Dir(); where != "/a" || err != nil {
		t.Error(where, err)
	}
	must.Do(t, os.Chmod(dir+"/d", 0o777)) // others may replace the second link
	reread(t, dir+"/one")
	if _, err := Dir(); err == nil || !strings.Contains(err.Error(), "stands in a file that is not used") {
		t.Error(err)
	}
}

func TestExpireAfter0FromAFileIsIgnoredForASemaphore(t *testing.T) {
	written(t, "ADLOCK_EXPIRE_AFTER=0")
	s := Defaults()
	s.Request.Atom, s.Request.Slots = atom.Named("backup", "h"), 2
	must.Do(t, s.Configure(s.Options(), values))
	if err := s.Check(); err != nil || s.Request.Limits.Preempt() {
		t.Error(err, s.Request.Limits)
	}
}

func TestADenialThatWaitingCannotEndDoesNotAdviseAWait(t *testing.T) {
	s := Defaults()
	if step := s.nextStep(locker.Outcome{Verdict: locker.Busy, Endless: true}); strings.Contains(step, ",") {
		t.Error(step)
	}
}

func TestTheLaterOfTwoConflictingSectionsOfAFileWins(t *testing.T) {
	written(t, "ADLOCK_REPLACE=1\n["+string(backup)+"]\nADLOCK_EXPIRE_AFTER=1h")
	all := Origins{}
	for name, filed := range FromFiles(backup) {
		all[OfVariable(name).Name] = filed.From
	}
	if all.Compare("expire-after", "replace") <= 0 || !strings.HasPrefix(all.Name("replace"), "ADLOCK_REPLACE (/") {
		t.Error(all)
	}
}
