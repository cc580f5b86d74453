package docs

// These tests run each recipe as printed, in a file system of its own. Each recipe has to be run
// here or in another test.

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// elsewhere lists recipes, by a part of their text, that are not run here: the test that runs
// them, or why there is nothing to run.
var elsewhere = map[string]string{
	"initContainers:":          "TestALockDirectoryOnAPodsVolumeKeepsLastLocks",
	"go test -":                "the project's own tests",
	"rooms, ":                  "TestTheTableOfPackagesInTheReadmeIsUpToDate",
	"sudo make install":        "TestUninstallRemovesWhatInstallMadeAndNothingElse",
	"apt-get install ./adlock": "TestThePackageGuardsACrontabAndIsUpgradedAndRemoved",
	"adlock run --store ":      "TestEveryStoreExampleInThePagesRuns",
	"adlock status --store ":   "TestStatusListsTheStoresAtomsWithTheirOwners",
	" fences ":                 "TestTheDatabaseFenceExample",
	"/report/fence":            "TestTheEtcdFenceExample",
	"make_report":              "TestTheFileFenceExample",
	"latest=":                  "TestTheFileFenceExample",
	"last lock  active lock":   "a table",
	"# of all locks":           "TestASettingsFileAppliesToEveryWayToLock",
}

// before lists commands to run before a recipe that has the text.
var before = map[string]string{
	"kill-carefully $pid":      "sleep 60 & pid=$!",
	"stat-age":                 "touch -d '1 hour ago' stamp",
	"adlock release --status":  ". /usr/local/lib/adlock/adlock.sh; ADLOCK_PROGRAM=copy adlock_get sync nightly",
	"--if-elapsed 15m -- fetc": "adlock run --name feeds -- true",
	"$picture":                 "picture=a.png",
	"$hosts":                   "hosts='a b'",
	"u www-data":               "adlock init www-data",
	"promtool check rules":     "mkdir -p /etc/prometheus/rules",
	"moves to web2":            "adlock run --name backup -- true",
	"adlock log":               "adlock run --name backup -- true; adlock run --name feeds -- true",
	"adlock timeline":          "adlock run --name backup -- true",
	"adlock report":            "adlock run --name backup -- true",
	"leave() {":                "adlock_get o x",
	"adlock clear backup": "adlock run --name backup -- sh -c 'echo $$ >pid; exec sleep 60' & " +
		"until [ -s pid ]; do sleep 0.05; done; kill -STOP $!; until grep -q '^State:.T' /proc/$!/status; do sleep 0.05; done; " +
		"kill -KILL $(cat pid); until grep -q '^State:.Z' /proc/$(cat pid)/status; do sleep 0.05; done; kill -KILL $!; wait $! 2>/dev/null || :",
	"adlock stop backup": "adlock run --name backup -- sh -c 'touch runs; sleep 60' 2>/dev/null & " +
		"until [ -e runs ] && flock -ns /var/lib/adlock/lock.*.backup grep -q ^command= /var/lib/adlock/lock.*.backup; do sleep 0.05; done",
	"status nightly": "adlock run --name nightly --expire-after 90m -- sh -c 'touch runs; sleep 60' & " +
		"until [ -e runs ]; do sleep 0.05; done",
}

// stubs are the commands in recipes that a reader has. Each stub records its calls.
var stubs = []string{
	"fetch-feeds", "load-feeds", "backup", "job", "resize", "make-report", "make-hosts", "refresh", "fetch",
	"fill_in_the_motd", "clean-var", "rsync", "mail", "work", "systemctl", "site-refresh", "site-rebuild",
}

// mayStay are the stubs that need not be called, as they stand behind ||.
var mayStay = []string{"mail"}

// stage installs adlock below a directory, once for all recipes.
func stage(t *testing.T) string {
	t.Helper()
	need.Root(t)
	need.Tools(t, "make", "patch", "runuser", "python3", "flock")
	need.Namespaces(t, "--mount", "--pid", "--fork", "--mount-proc")
	dir := t.TempDir()
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		must.Do(t, os.Chmod(up, 0o755)) // www-data must reach it
	}
	must.Do(t, exec.Command("cp", "-a", "/etc", dir+"/etc").Run())
	install := exec.Command("make", "-s", "build", "install", "BUILD="+dir+"/build", "DESTDIR="+dir)
	install.Dir = helper.Root()
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func TestEveryRecipeOfThePagesSucceedsAsPrinted(t *testing.T) {
	dir := stage(t)
	count := 0
	for _, page := range helper.Pages(t) {
		for _, r := range helper.Recipes(t, page) {
			if isElsewhere(r) {
				continue
			}
			count++
			t.Run(page+"/"+firstLine(r.Text), func(t *testing.T) { try(t, dir, r) })
		}
	}
	if count < 30 {
		t.Errorf("only %d recipes were found", count)
	}
}

func TestEachTestNamedForARecipeExists(t *testing.T) {
	tests := must.Get(exec.Command("grep", "-rhoE", "^func Test[A-Za-z0-9]+", filepath.Join(helper.Root(), "test"), "--include=*_test.go").Output())(t)
	for text, test := range elsewhere {
		if strings.HasPrefix(test, "Test") && !strings.Contains(string(tests), "func "+test) {
			t.Errorf("%q: there is no %s", text, test)
		}
	}
}

func isElsewhere(r helper.Recipe) bool {
	for text := range elsewhere {
		if r.Has(text) {
			return true
		}
	}
	return false
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.Join(strings.Fields(line), " ")
}

// kind is what a recipe is: a session, a crontab, a Makefile, a Python program, or a shell script.
func kind(text string) string {
	switch {
	case strings.HasPrefix(text, "$ "):
		return "session"
	case regexp.MustCompile(`(?m)^(SHELL=|[*/0-9]+ [*0-9])`).MatchString(text):
		return "crontab"
	case strings.HasPrefix(text, "include "):
		return "make"
	case strings.Contains(text, "subprocess."):
		return "python"
	}
	return "script"
}

// try runs one recipe on a stage of its own.
func try(t *testing.T, dir string, r helper.Recipe) {
	work := filepath.Join(dir, "work")
	must.Do(t, os.RemoveAll(work))
	must.Do(t, os.MkdirAll(filepath.Join(work, "bin"), 0o755))
	must.Do(t, os.Chmod(work, 0o755))
	for _, name := range stubs {
		stub := "#!/bin/sh\n[ -t 0 ] || cat\necho " + name + " >>/mnt/called\n"
		for _, where := range []string{work + "/bin/", dir + "/usr/local/bin/"} {
			must.Do(t, need.WriteProgram(where+name, []byte(stub), 0o755))
		}
	}
	write := func(name, text string) {
		must.Do(t, need.WriteProgram(filepath.Join(work, "bin", name), []byte(text), 0o755))
	}
	write("sudo", "#!/bin/sh\nuser=$2; shift 2; exec runuser -u \"$user\" -- \"$@\"\n")
	write("crontab", "#!/bin/sh\ncase $1 in -l) cat /mnt/crontab ;; -) cat >/mnt/crontab.new; mv /mnt/crontab.new /mnt/crontab ;; esac\n")
	text, want := script(r)
	must.Do(t, os.WriteFile(filepath.Join(work, "block"), []byte(text), 0o644))
	ran := helper.Command{
		Args: []string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh",
			filepath.Join(helper.Root(), "test/docs/recipe_stage.sh"), dir, "/mnt/block", kind(r.Text)},
		Env: []string{"PATH=/mnt/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "ADLOCK_HOST=myhost", "HOME=/mnt", "LC_ALL=C", "USER=root", "ADLOCK_PAUSE=1s", "TMPDIR=/tmp"},
	}.Run(t)
	if ran.Status != 0 || complaint(ran.Err) != "" {
		t.Errorf("status %d, on standard error: %s\n%s", ran.Status, ran.Err, text)
	}
	if kind(r.Text) == "session" && figures(ran.Out) != figures(want) {
		t.Errorf("prints\n%sand the page has\n%s", ran.Out, want)
	}
	called, _ := os.ReadFile(filepath.Join(work, "called")) // not there: no stub was called
	for _, name := range stubs {
		named := regexp.MustCompile(`(^|\s|bin/)` + name + `($|\s|\()`).MatchString(commandsOf(r.Text))
		if named && !slices.Contains(mayStay, name) && !slices.Contains(strings.Fields(string(called)), name) {
			t.Errorf("%s was not run; %q were", name, called)
		}
	}
}

// script returns a recipe as a file, with the commands before it, and the output that the page shows, if any.
func script(r helper.Recipe) (text, want string) {
	// A package installs in another place than make install.
	text = strings.ReplaceAll(r.Text, "/usr/lib/adlock/", "/usr/local/lib/adlock/")
	switch kind(text) {
	case "crontab", "make":
		return text, ""
	case "python":
		return "import os, subprocess\ndef work():\n    subprocess.run(['work'], check=True)\n" + text, ""
	}
	head := ""
	if r.Page == "sh/adlock.sh.3" {
		head = ". /usr/local/lib/adlock/adlock.sh\n"
	}
	for text, first := range before {
		if r.Has(text) {
			head += first + "\n"
		}
	}
	if kind(text) == "session" {
		want = text
		text = "exec 2>&1; set +e\n" // a command may be denied, as the page shows
		for _, command := range typed(want) {
			text += "printf '%s\\n' '$ " + strings.ReplaceAll(command, "'", `'\''`) + "'\n" + command + "\ncase $? in 0 | 75) ;; *) exit 1 ;; esac\n"
		}
	}
	// --follow would not end.
	text = regexp.MustCompile(`(?m)^adlock log --follow.*$`).ReplaceAllString(text, "timeout -s INT 1 $0 || [ $$? = 124 ]")
	return head + text + "\n", want
}

// typed lists the commands of a session: its lines after a prompt.
func typed(session string) (commands []string) {
	for _, line := range strings.Split(session, "\n") {
		if command, is := strings.CutPrefix(line, "$ "); is {
			commands = append(commands, command)
		}
	}
	return commands
}

// commandsOf drops comments, quoted text, and names of locks.
func commandsOf(text string) string {
	if kind(text) == "session" {
		text = strings.Join(typed(text), "\n")
	}
	text = regexp.MustCompile(`#.*|'[^']*'`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`--name \S+|--explain \S+|--follow \S+|(clear|stop|config|resume) \S+|--why +\S+|: \S+ ADLOCK|feeds$|timeline .*|adlock log.*`).ReplaceAllString(text, "")
	return text
}

// complaint drops the reports of adlock wrap and adlock stop.
func complaint(said string) string {
	return regexp.MustCompile(`adlock: \S.*: (lines (to wrap|(un)?wrapped): \d+|ended process \d+ by force, as asked: .*)\n`).ReplaceAllString(said, "")
}

// figures replaces figures and columns, which differ each time.
func figures(text string) string {
	text = regexp.MustCompile(`\b(\d+(\.\d+)?(ms|[smhdw])?)+\b`).ReplaceAllString(text, "N")
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}
