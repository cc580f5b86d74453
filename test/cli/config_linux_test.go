package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// household is an ordinary user with a settings file and its own programs. (Root has no settings file at home.)
type household struct {
	*testing.T
	home string
	uid  int // 0: the test's own user
}

// newHousehold writes the settings that every test needs, and below them the test's own.
func newHousehold(t *testing.T, settings string) *household {
	t.Helper()
	t.Parallel()
	home := get(os.MkdirTemp("", "adlock-home-"))(t)
	t.Cleanup(func() { os.RemoveAll(home) })
	h := &household{T: t, home: home}
	h.put(helper.Binary(t), "bin/adlock", 0o755)
	h.put(helper.Binary(t)+"-report", "bin/adlock-report", 0o755)
	h.put(filepath.Join(helper.Root(), "sh/adlock.sh"), "bin/adlock.sh", 0o644)
	h.write("ADLOCK_DIR=" + home + "/locks\nADLOCK_PAUSE=1s\n" + settings)
	if os.Geteuid() == 0 {
		h.uid = nobody
		must(t, filepath.Walk(home, func(path string, _ os.FileInfo, err error) error {
			return errors.Join(err, os.Lchown(path, nobody, nobody))
		}))
	}
	return h
}

func (h *household) put(from, to string, mode os.FileMode) {
	h.Helper()
	text, err := os.ReadFile(from)
	must(h, errors.Join(err, os.MkdirAll(filepath.Dir(filepath.Join(h.home, to)), 0o755)))
	must(h, need.WriteProgram(filepath.Join(h.home, to), text, mode))
}

func (h *household) write(settings string) {
	h.Helper()
	path := filepath.Join(h.home, ".config/adlock.conf")
	must(h, os.MkdirAll(filepath.Dir(path), 0o755))
	must(h, os.WriteFile(path, []byte(settings), 0o644))
}

func (h *household) sh(script string) helper.Result {
	h.Helper()
	return helper.Command{
		Args: []string{"sh", "-c", script}, Dir: "/", UID: h.uid,
		Env: []string{"HOME=" + h.home, "PATH=" + h.home + "/bin:" + os.Getenv("PATH"), "ADLOCK_HOST=h"},
	}.Run(h.T)
}

// prints runs a script and compares what it prints; it must print nothing on standard error.
func (h *household) prints(script, want string) {
	h.Helper()
	if r := h.sh(script); r.Err != "" || r.Out != want {
		h.Errorf("%s: %+v", script, r)
	}
}

func TestASettingsFileAppliesToEveryWayToLock(t *testing.T) {
	h := newHousehold(t, "[adlock.*.run.*]\nADLOCK_IF_ELAPSED=never\n[sh.h.get.*]\nADLOCK_IF_ELAPSED=1h\n[*.guard.*]\nADLOCK_IF_ELAPSED=1h\nADLOCK_RETRY_FAILED=1")
	const twice = "for i in 1 2; do %; echo $?; done"
	for _, command := range []string{
		"adlock run --name a true", "adlock shell -c ': b ; true'",
		`sh -c '. adlock.sh; adlock_get get c && adlock_release'`, `sh -c '. adlock.sh; adlock_agent; adlock_get get d && adlock_release'`,
	} {
		h.prints(strings.Replace(twice, "%", command, 1), "0\n75\n")
	}
	h.prints(`mkfifo $HOME/in; exec 3<>$HOME/in; for i in 1 2; do echo release >&3; adlock hold e <&3; done | cut -d ' ' -f 1`, "acquired\nreleased\ntoo-soon\n")
	h.prints(`echo '. adlock.sh; adlock_guard; echo ran; exit 1' >$HOME/fails; sh $HOME/fails; sh $HOME/fails`, "ran\nran\n")
	h.prints(`echo '. adlock.sh; adlock_guard; echo ran' >$HOME/script; sh $HOME/script; sh $HOME/script; echo $?`, "ran\n0\n")
	h.prints(`cd $HOME/locks && echo last.*.run.[abe] last.sh.h.get.[cd]`, "last.adlock.h.run.a last.adlock.h.run.b last.adlock.h.run.e last.sh.h.get.c last.sh.h.get.d\n")
}

func TestASettingsMistakeIsReportedOnceUntilItsFileChanges(t *testing.T) {
	h := newHousehold(t, "ADLOCK_WIAT=1s\n")
	h.sh("mkdir -m 700 $HOME/locks && cd $HOME/.config && mv adlock.conf real && ln -s real adlock.conf")
	told := "adlock: " + h.home + "/.config/adlock.conf:3: unknown setting: did you mean ADLOCK_WAIT?\n"
	for i, command := range []string{"adlock run true", "adlock run true", `sh -c '. adlock.sh; adlock_get a b'`, "adlock run --dry-run true >/dev/null", "chmod 640 $HOME/.config/adlock.conf; adlock run true; adlock run true"} {
		want := ""
		if i == 0 || i == 4 {
			want = told
		}
		h.sh(command).Is(t, 0, "…", want)
	}
}

func TestNoJobRunsIfALocationSettingIsWrong(t *testing.T) {
	h := newHousehold(t, "ADLOCK_LOGDIR=logs\n")
	for _, command := range []string{"adlock run true", `sh -c '. adlock.sh; adlock_get a b'`, "sleep 9 | adlock hold a", "adlock shell -c 'echo ran'", "adlock status"} {
		if r := h.sh(command); r.Status != 64 || !oneLine(r.Err) || r.Out != "" && !strings.HasPrefix(r.Out, "error ") || !strings.Contains(r.Err, "adlock.conf:3: ADLOCK_LOGDIR wants a full path") {
			t.Errorf("%s: %+v", command, r)
		}
	}
}

func TestAWrongLocationSettingIsReportedToTheHook(t *testing.T) {
	h := newHousehold(t, "ADLOCK_HOOK=echo $ADLOCK_EVENT $ADLOCK_ATOM $ADLOCK_TEXT >$HOME/new; mv $HOME/new $HOME/told\nADLOCK_LOGDIR=logs\n")
	for name, command := range map[string]string{"a": "adlock run --name a true", "b": "adlock shell -c ': b ; true'"} {
		r := h.sh(command + ` && exit; n=0; until [ -e $HOME/told ] || [ $n -ge 1800 ]; do n=$((n + 1)); sleep .05; done; cat $HOME/told; rm $HOME/told`)
		if !strings.HasPrefix(r.Out, "not-run adlock.h.run."+name) ||
			!strings.HasSuffix(r.Out, "conf:4: ADLOCK_LOGDIR wants a full path\n") {
			t.Errorf("%s: %+v", command, r)
		}
	}
}

func TestALockIsReleasedDespiteAMistakeInASettingsFile(t *testing.T) {
	h := newHousehold(t, "")
	r := h.sh(`sh -c '. adlock.sh; adlock_get a b || exit; echo ADLOCK_LOGDIR=logs >>$HOME/.config/adlock.conf; adlock_release; echo $?; ls $HOME/locks | grep -c ^lock'`)
	if r.Out != "0\n0\n" || !oneLine(r.Err) || !strings.Contains(r.Err, "ADLOCK_LOGDIR wants a full path") {
		t.Errorf("%+v", r)
	}
}

func TestDoctorReportsAWrongLocationSetting(t *testing.T) {
	h := newHousehold(t, "ADLOCK_WIAT=1s\nADLOCK_LOGDIR=logs\n")
	file := h.home + "/.config/adlock.conf:"
	r := h.sh("adlock doctor")
	if r.Status != 1 || r.Err != "" || !strings.Contains(r.Out, "fail settings: "+file+"4: ADLOCK_LOGDIR wants a full path") || !strings.Contains(r.Out, "warn settings: "+file+"3: ") {
		t.Errorf("%+v", r)
	}
}

func TestTheLibraryRefusesOncePerInASettingsFile(t *testing.T) {
	h := newHousehold(t, "[sh.*]\nADLOCK_ONCE_PER=1d\n")
	h.sh(`. adlock.sh; adlock_get a b`).Refused(t, 64, "adlock.conf:4: ADLOCK_ONCE_PER is for adlock run")
}

func TestContradictingSettingsOfOneSectionAreRefused(t *testing.T) {
	h := newHousehold(t, "[a]\nADLOCK_EXPIRE_AFTER=1h\nADLOCK_REPLACE=1\n[b]\nADLOCK_REPLACE=1\nADLOCK_ENFORCE=1\n[c]\nADLOCK_REPLACE=1\n[*.c]\nADLOCK_EXPIRE_AFTER=1h\n")
	h.sh("adlock run --name a -- echo ran").Refused(t, 64, "ADLOCK_REPLACE ("+h.home+"/.config/adlock.conf:5): is ExpireAfter 0")
	h.sh("adlock run --name b -- echo ran").Refused(t, 64, "ADLOCK_ENFORCE ("+h.home+"/.config/adlock.conf:8): cannot go with --replace")
	r := h.sh("adlock run --name c --dry-run -- true")
	if says := "\nsettings files: ADLOCK_PAUSE (" + h.home + "/.config/adlock.conf:2), ADLOCK_REPLACE (" + h.home + "/.config/adlock.conf:10)\n"; r.Err != "" || !strings.Contains(r.Out, says) {
		t.Errorf("%+v, want %q", r, says)
	}
}

func TestConfigShowsWhereEachSettingIsFrom(t *testing.T) {
	h := newHousehold(t, "[a]\nADLOCK_WAIT=5m\n")
	file := h.home + "/.config/adlock.conf:"
	r := h.sh("ADLOCK_SLOTS=3 adlock config --json a")
	for setting, want := range map[string][2]string{
		"ADLOCK_WAIT": {"5m", file + "4"}, "ADLOCK_DIR": {h.home + "/locks", file + "1"},
		"ADLOCK_SLOTS": {"3", "environment"}, "ADLOCK_STARVING": {"10", "default"},
	} {
		if line := fmt.Sprintf(`{"setting":%q,"value":%q,"from":%q}`, setting, want[0], want[1]); r.Err != "" ||
			!strings.Contains(r.Out, line) {
			t.Errorf("no %s in %+v", line, r)
		}
	}
	h.prints("adlock config b | grep -cE 'WAIT *default|LEASE *15s *default|LOGDIR *the lock directory *default'", "3\n")
	h.prints("adlock config | grep -q 'DIR .*locks *"+file+"1' && echo found", "found\n")
	h.prints("ADLOCK_AGNT=0 ADLOCK_LOG_MAX=0 ADLOCK_SLOTS=x ADLOCK_MARK=y adlock config 2>&1 >/dev/null | cut -c 1-57; adlock config >/dev/null; echo $?",
		"adlock: ADLOCK_AGNT: is no setting of adlock: did you mea\nadlock: ADLOCK_SLOTS: \"x\": want a whole number from 0 to \nadlock: ADLOCK_LOG_MAX: \"0\": want a whole number from 1 t\n0\n")
}

func TestConfigChecksAFileBeforeItIsPutInPlace(t *testing.T) {
	h := newHousehold(t, "")
	h.prints(`printf 'ADLOCK_WAIT=5s\n' >$HOME/new; chmod 666 $HOME/new; adlock config --check $HOME/new --json`, "[]\n")
	r := h.sh(`printf 'ADLOCK_WAIT=5\nADLOCK_DIR=b\n[a]\nADLOCK_DIR=/b\n' >$HOME/new; cd "$HOME"; adlock config --check new 2>&1; echo $?; adlock config --check new --json; adlock config --check new a; echo $?; truncate -s 2M big; for file in none . big; do adlock config --check $file; echo $?; done`)
	want := "adlock: new:1: ADLOCK_WAIT: 5: say 5s or 5m\nadlock: new:2: ADLOCK_DIR wants a full path\nadlock: new:4: ADLOCK_DIR belongs above the first section\n1\n"
	want += `[{"at":"new:1","reason":"ADLOCK_WAIT: 5: say 5s or 5m"},{"at":"new:2","reason":"ADLOCK_DIR wants a full path"},{"at":"new:4","reason":"ADLOCK_DIR belongs above the first section"}]`
	if r.Out != want+"\n64\n69\n64\n64\n" || strings.Count(r.Err, "\n") != 4 {
		t.Errorf("%+v", r)
	}
}
