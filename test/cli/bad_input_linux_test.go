package cli

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
)

const nobody = 65534

// If the script is killed meanwhile, its helper gets another parent. The script made no mistake,
// and is not there to read a message.
func TestAHelperOfADeadScriptPrintsNothing(t *testing.T) {
	script := exec.Command("true")
	must(t, script.Start())
	dead := strconv.Itoa(script.Process.Pid)
	said := func(dead string) {
		t.Helper()
		for _, line := range []string{
			"take --owner " + dead + " lock.p.h.o.x p h o x", "takeover --owner " + dead + " lock.p.h.o.x p h o x",
			"guard --owner " + dead + " --script x --directory / p h o x y", "agent --owner " + dead,
			"hold --owner " + dead + " x",
		} {
			s := &stage{t, helper.Dir(t), t.TempDir()}
			c := s.command(strings.Fields(line)...)
			c.Args = append([]string{"sh", "-c", `read -r line; exec "$@"`, "sh"}, c.Args...) // its standard input is at its end
			r := c.Run(s)
			if left, err := os.ReadDir(s.locks); r.Status != 64 || r.Out+r.Err != "" || err != nil || len(left) > 0 {
				t.Errorf("%s: %+v, left %v, %v", line, r, left, err)
			}
		}
	}
	var info unix.Siginfo
	must(t, unix.Waitid(unix.P_PID, script.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	said(dead) // a zombie: not reaped yet
	must(t, script.Wait())
	said(dead)
}

func TestAMistypedCommandLineIsAUsageErrorInOneLine(t *testing.T) {
	for _, c := range []struct {
		says string
		line string // words, with _ for an empty one
	}{
		{"--exprie-after: unknown option: did you mean --expire-after?", "run --exprie-after 3 true"},
		{"-: unknown option", "run -=x true"},
		{`unknown event "dney": did you mean deny? (there are acquire, deny, release, `, "log --event dney"},
		{"--output: must not be empty", "metrics --output _"},
		{`--expire-after: bad duration "5min" (want numbers with ms s m h d w, as in "90s", "1h30m", "1.5h"; or 0, "never", "auto")`, "run --expire-after 5min true"},
		{"--wait: 60: say 60s or 60m", "run --wait 60 true"},
		{"wants a COMMAND", "run"},
		{"--name: is 'a' already; two locks nest: adlock run --name 'a' -- adlock run --name 'b' -- COMMAND", "run --name a --name=b true"},
		{`want a time that ends, such as "5m"`, "run --pause never true"},
		{`--wait: "never": want "forever" to wait without end`, "run --wait never true"},
		{`"1h30m", "1.5h"; or 0, "forever"`, "run --wait soon true"},
		{"--wait-elapsed: wants --wait too", "run --wait-elapsed true"},
		{"ADLOCK_WAIT_ELAPSED: wants --wait too (ADLOCK_WAIT)", "take --owner 1 --wait-elapsed lock.p.h.o.x p h o x"},
		{"--name: cannot go with --operand", "ADLOCK_OPERAND=b ADLOCK_NAME=a run true"},
		{"ADLOCK_SLOTS: counts the atoms of one program (--program), or the runs of a --name beside which it is set", "ADLOCK_SLOTS=2 run --name a true"},
		{"--if-elapsed: cannot go with --slots of one name", "run --slots 2 --name a --if-elapsed 1h true"},
		{"--once-per: cannot go with --slots of one name", "run --slots 2 --name a --once-per 1d true"},
		{"--replace: cannot go with --slots of one name", "run --slots 2 --name a --replace true"},
		{"ADLOCK_SLOTS: counts the jobs of one program, and the lines of a crontab have none: set ADLOCK_PROGRAM too", "ADLOCK_SLOTS=2 shell -c true"},
		{"ADLOCK_ENFORCE: cannot go with --replace", "ADLOCK_ENFORCE=1 ADLOCK_REPLACE=1 shell -c true"},
		{"ADLOCK_REPLACE: is ExpireAfter 0", "ADLOCK_EXPIRE_AFTER=1h ADLOCK_REPLACE=1 run true"},
		{"--enforce: cannot go with --replace", "run --enforce --replace true"},
		{"--enforce: wants a limit to enforce: --expire-after D", "run --enforce true"},
		{"is no store: want a directory, etcd://", "run --store etcd:/a true"},
		{`"256"`, "run --exit-denied 256 true"},
		{`"1001"`, "run --slots 1001 true"},
		{`"noon"`, "run --now noon true"},
		{"--once-per: ", "run --once-per 999ms true"},
		{"to ten years", "run --once-per 15251w true"},
		{"wants a FILE", "stat-age"},
		{"wants one FILE", "mkatomic"},
		{"the first word is empty", "run _ x"},
		{"must not be empty", "name p h _ o"},
		{"ADLOCK_SLOTS: counts the atoms of one program, and adlock is that of --name",
			"ADLOCK_PROGRAM=adlock ADLOCK_SLOTS=2 run true"},
		{"ADLOCK_ONCE_PER", "ADLOCK_ONCE_PER=522w run true"},
		{"ADLOCK_ENFORCE", "ADLOCK_ENFORCE=maybe run true"},
		{"ADLOCK_LOG_MAX", "ADLOCK_LOG_MAX=big run true"},
		{"wants one FILE", "release"},
		{"lock.PROGRAM.HOST.OPERATOR.OPERAND", "release nothing"},
		{"--dry-run: options come before", "kill-carefully 4194304 --dry-run"},
		{"wants a PID, or --lock FILE", "kill-carefully --lock"},
		{"lock.PROGRAM.HOST.OPERATOR.OPERAND", "kill-carefully --lock lock.nothing"},
		{"NAME must not be empty", "clear _"},
		{"stat-age: FILE must not be empty", "stat-age _"},
		{"wants a NAME", "clear"},
		{"etcd://a/p: stop is for lock directories", "stop --store etcd://a/p a"},
		{`config: wants one NAME, got "b" too`, "config a b"},
		{`--wait: bad duration "99999999999d" (too long: at most 15250w)`, "run --wait 99999999999d true"},
		{`no atom matches "--json"`, "status -- --json"},
		{"--jsno: unknown option: did you mean --json?", "status nothing --jsno"},
		{"--older", "clear --last"},
		{"--token: must not be empty", "release --token _ lock.p.h.o.x"},
		{"--dry-run: unknown option", "take --owner 1 --dry-run lock.p.h.o.x p h o x"},
		{"wants one FILE", "kill-carefully --lock lock.p.h.o.x p h o x"},
		{"is not the lock of this atom", "take --owner 1 lock.p.h.o.other p h o x"},
		{"--owner: is not an ancestor", "take --owner STRANGER lock.p.h.o.x p h o x"},
	} {
		t.Run(c.line, func(t *testing.T) {
			s := newStage(t)
			words := strings.Fields(c.line)
			for i, word := range words {
				switch word {
				case "_":
					words[i] = ""
				case "STRANGER":
					words[i] = strconv.Itoa(helper.Command{Args: []string{"sleep", "60"}}.Start(t).PID)
				}
			}
			s.refused(64, c.says, words...)
			left, err := os.ReadDir(s.locks)
			left = slices.DeleteFunc(left, func(e os.DirEntry) bool { return e.Name() == "program."+host+".runlog" })
			if err != nil || len(left) > 0 {
				t.Errorf("written: %v %v", left, err)
			}
		})
	}
}

// A variable that is empty, and not in quotes, leaves an option without its value.
func TestRunTakesNoOptionForTheValueOfAnother(t *testing.T) {
	s := newStage(t)
	for _, words := range [][]string{{"run", "--name", "--", "touch", "ran"}, {"run", "--name", "--wait=1s", "touch", "ran"}, {"run", "--name"}} {
		s.refused(64, "--name: needs a value", words...)
	}
	s.want(0, "run", "--name=--", "true")
	helper.Absent(t, s.in("ran"))
}

func TestACommandThatCannotRunGetsOnlyAHintThatFits(t *testing.T) {
	s := newStage(t)
	must(t, os.WriteFile(s.in("empty"), nil, 0o644))
	must(t, os.WriteFile(s.in("text"), []byte("no program"), 0o644))
	for _, c := range []struct {
		says   string
		status int
		words  []string
	}{
		{"cd: no such file or directory (for what only a shell can do: sh -c 'cd /tmp')", 127, []string{"cd", "/tmp"}},
		{`(for a line of the shell: sh -c 'echo '\''x'\''')`, 127, []string{"echo 'x'"}},
		{"./text: permission denied", 126, []string{"./text"}},
		{"FOO=1: no such file or directory (to set a variable: env FOO=1 make 'all of it')", 127, []string{"FOO=1", "make", "all of it"}},
		{"(no lock file is named here: --name x names the lock)", 127, []string{"/run/x.lock", "job"}},
		{s.locks + ": permission denied (it is a directory)", 126, []string{s.locks}},
		{"./empty: permission denied (no lock file is named here: --name empty names the lock)", 126, []string{"./empty", "job"}},
		{"backup: no such file or directory (to name the lock: --name backup)\n", 127, []string{"backup", "sh", "-c", "true"}},
		{"backup: no such file or directory (to name the lock: --name backup sh -c 'a; b')\n", 127, []string{"backup", "-c", "a; b"}},
		{"90m: no such file or directory (to end it after 90m: --expire-after 90m --enforce)\n", 127, []string{"90m", "sh"}},
		{"adlock: nothing-of-the-kind: no such file or directory\n", 127, []string{"nothing-of-the-kind", "x"}},
		{"adlock: /nowhere/job: no such file or directory\n", 127, []string{"/nowhere/job"}},
		{"adlock: /nowhere/job: no such file or directory\n", 127, []string{"--dry-run", "/nowhere/job"}},
	} {
		s.refused(c.status, c.says, append([]string{"run"}, c.words...)...)
	}
	if left, _ := os.ReadDir(s.locks); len(left) != 1 || left[0].Name() != "program."+host+".runlog" {
		t.Errorf("written: %v, want the runlog alone", left)
	}
}

// Users may type options of flock(1), setlock(8) and timeout(1) by habit.
func TestRunNamesTheCounterpartsOfOptionsOfFlockAndTimeout(t *testing.T) {
	s := newStage(t)
	const lists = " (adlock run --help lists them)\n"
	plain := "for flock -n LOCK COMMAND say adlock run --name LOCK COMMAND"
	wait := "for flock -w 5 LOCK COMMAND say adlock run --name LOCK --wait 5s COMMAND"
	line := "for flock -n LOCK -c 'COMMAND' say adlock run --name LOCK sh -c 'COMMAND'"
	limit := "for timeout -k 9s 5m COMMAND say adlock run --expire-after 5m --enforce --pause 9s COMMAND"
	for _, c := range []struct {
		option, says string
		words        []string
	}{
		{"-n", plain, []string{"-n", "lock", "true"}},
		{"-nE", plain, []string{"-nE", "75", "lock", "true"}},
		{"--exclusive", plain, []string{"--exclusive", "lock", "true"}},
		{"-w", wait, []string{"-w", "5", "lock", "true"}},
		{"-w5", wait, []string{"-w5", "lock", "true"}},
		{"--timeout", "to end the job after D say --expire-after D --enforce; to wait at most D for the lock, as flock does, say --wait D", []string{"--timeout", "90s", "true"}},
		{"-s", "for flock -ns LOCK COMMAND say adlock run --name LOCK --shared COMMAND", []string{"-s", "lock", "true"}},
		{"--command", line, []string{"--command", "true"}},
		{"--conflict-exit-code", "for flock -n -E 0 LOCK COMMAND say adlock run --name LOCK -E 0 COMMAND", []string{"--conflict-exit-code", "0", "lock", "true"}},
		{"--kill-after", limit, []string{"--kill-after=9", "5m", "true"}},
	} {
		s.refused(64, "adlock: "+c.option+": unknown option: "+c.says+lists, append([]string{"run"}, c.words...)...)
	}
	s.refused(64, "adlock: -name: unknown option: did you mean --name?"+lists, "run", "-name", "x", "true")
	s.refused(64, "adlock: -E75: unknown option: did you mean -E 75?"+lists, "run", "-E75", "true") // a value stands apart
	s.refused(64, "adlock: -f20: unknown option (adlock log --help lists them)\n", "log", "-f20")
}

func TestAnUnsafeDirectoryOrAFileIsNoLockDirectory(t *testing.T) {
	s := newStage(t)
	mkdir(t, s.in("open"), 0o777)
	must(t, os.Symlink(s.locks, s.in("link")))
	s.in("file", "")
	for dir, c := range map[string]struct {
		status int
		says   string
	}{
		s.in("open"): {77, "writable by others (chmod go-w '" + s.in("open") + "')"}, s.in("file"): {73, "not a directory"},
		s.in("link"): {77, "symbolic link (name where it leads: ADLOCK_DIR)"}, "/proc/locks": {73, "/proc/locks"},
	} {
		s.refused(c.status, c.says, "ADLOCK_DIR="+dir, "run", "--", "touch", "ran")
	}
	helper.Absent(t, s.in("ran"))
}

func mkdir(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must(t, os.Mkdir(path, mode))
	must(t, os.Chmod(path, mode)) // whatever the umask is
}

func (s *stage) plant(name, text string) {
	s.Helper()
	must(s, os.RemoveAll(s.lockOf(name)))
	must(s, os.WriteFile(s.lockOf(name), []byte(text), 0o600))
}

func TestADryRunShowsWhichOfContradictingOptionsCounts(t *testing.T) {
	s := newStage(t)
	s.hold("a", "--expire-after", "2h")
	const replaced, kept = "ExpireAfter is 0s; it would be ended\n", "ExpireAfter is "
	for _, c := range []struct{ says, line string }{
		{replaced, "ADLOCK_EXPIRE_AFTER=90m run --name a --replace"},
		{replaced, "ADLOCK_ENFORCE=1 run --name a --replace"},
		{replaced, "ADLOCK_ENFORCE=1 run --name a --expire-after 0"},
		{replaced, "ADLOCK_REPLACE=1 run --name a --expire-after 0"},
		{kept + "1h30m", "ADLOCK_REPLACE=1 run --name a --expire-after 90m"},
		{kept + "2h", "ADLOCK_REPLACE=1 run --name a --expire-after auto"},
		{"\nwarning: ADLOCK_ENFORCE is ignored, as no limit is said ", "ADLOCK_ENFORCE=1 run --name a"},
		{"\nwarning: --enforce ends nothing yet, as no ExpireAfter is learned\n", "run --name a --enforce --expire-after auto"},
		{"/lock.job.dax.run.a\n", "ADLOCK_OPERAND=b run --name a"},
		{"/lock.job.dax.run.b\n", "ADLOCK_NAME=a run --operand b"},
	} {
		r := s.adlock(append(strings.Fields(c.line), "--program", "job", "--dry-run", "true")...)
		if r.Err != "" || !strings.Contains(r.Out, c.says) {
			t.Errorf("%s: status %d, %q, %q; want %q", c.line, r.Status, r.Out, r.Err, c.says)
		}
	}
}
