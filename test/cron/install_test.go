package cron

// These tests try `make install` as root runs it: with a user's build, and without Go.

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// tools lists the programs that an installation may use.
var tools = []string{"make", "sh", "sed", "grep", "sort", "install", "chmod", "mv", "rm", "rmdir", "find", "git"}

// tree is a directory like the project's after `make build`, and a PATH without Go.
type tree struct {
	*testing.T
	dir, path string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	need.Tools(t, tools...)
	tr := &tree{t, t.TempDir(), t.TempDir()}
	for _, tool := range tools {
		found := must.Get(exec.LookPath(tool))(t)
		tr.link(found, filepath.Join(tr.path, tool))
	}
	must.Do(tr, os.Mkdir(filepath.Join(tr.dir, "build"), 0o755))
	must.Do(tr, os.Mkdir(filepath.Join(tr.dir, "test"), 0o755))
	for _, part := range []string{"Makefile", "sh", "cmd", "lib", "test/examples", "go.mod", "README.md", "CHANGELOG.md", "LICENSE"} {
		tr.link(filepath.Join(helper.Root(), part), filepath.Join(tr.dir, part))
	}
	for _, program := range []string{"adlock", "adlock-report", "adlock-locksmith"} {
		text := must.Get(os.ReadFile(helper.Binary(t)))(t) // any program will do
		must.Do(tr, need.WriteProgram(filepath.Join(tr.dir, "build", program), text, 0o755))
	}
	return tr
}

func (t *tree) link(to, name string) {
	t.Helper()
	must.Do(t, os.Symlink(to, name))
}

func (t *tree) make(words ...string) helper.Result {
	t.Helper()
	return helper.Command{Args: append([]string{"make", "--no-print-directory"}, words...), Dir: t.dir, Env: []string{"PATH=" + t.path, "MAKEFLAGS=", "MAKELEVEL="}, Limit: 4 * helper.Patience}.Run(t)
}

// files are the files below a directory, with their modes.
func (t *tree) files(dir string) (found []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		found = append(found, info.Mode().Perm().String()+" "+strings.TrimPrefix(path, dir))
		return err
	}))
	return found
}

// In the library or in a command of the Makefile, the shell would read such a name as another one,
// or as a command.
func TestADirectoryNameThatCannotBeQuotedIsRefused(t *testing.T) {
	tr := newTree(t)
	bad := []string{`d"q`, `s\x`, "`touch pwned`", "$$(touch pwned)"}
	for where, names := range map[string][]string{"DESTDIR": bad, "PREFIX": append([]string{"q'q", "a|b", "a&b"}, bad...)} {
		for _, odd := range names {
			for _, target := range []string{"install", "uninstall"} {
				dir := filepath.Join(t.TempDir(), "stage")
				r := tr.make(target, where+"="+filepath.Join(dir, odd))
				if _, err := os.Stat(dir); r.Status == 0 || err == nil || !strings.Contains(r.Err, "can stand in this directory\n") {
					t.Errorf("%s %s=%s: %d %s%s", target, where, odd, r.Status, r.Out, r.Err)
				}
			}
		}
	}
	if r := tr.make("install", "DESTDIR="+filepath.Join(t.TempDir(), "o'neil & a|b")); r.Status != 0 {
		t.Errorf("a stage: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(tr.dir, "pwned")); err == nil {
		t.Error("a command in a directory's name was run")
	}
}

func TestInstallNeedsNoGoOnceThingsAreBuilt(t *testing.T) {
	tr, stage := newTree(t), filepath.Join(t.TempDir(), "a stage")
	built := tr.files(filepath.Join(tr.dir, "build"))
	if r := tr.make("install", "DESTDIR="+stage, "PREFIX=/opt/adlock"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	var got []string
	manual := 0
	for _, file := range tr.files(stage + "/opt/adlock") {
		switch {
		case strings.HasPrefix(file, "-rw-r--r-- /share/man/man"):
			manual++
		case !strings.Contains(file, " /share/doc/adlock/"):
			got = append(got, file)
		}
	}
	want := []string{
		"-rwxr-xr-x /bin/adlock", "-rwxr-xr-x /bin/adlock-locksmith", "-rwxr-xr-x /bin/adlock-report",
		"-rw-r--r-- /etc/logrotate.d/adlock",
		"-rw-r--r-- /lib/adlock/adlock-alerts.yml", "-rw-r--r-- /lib/adlock/adlock-dashboard.json", "-rw-r--r-- /lib/adlock/adlock.mk", "-rw-r--r-- /lib/adlock/adlock.sh",
		"-rwxr-xr-x /lib/adlock/guarded-crontabs", "-rwxr-xr-x /lib/adlock/shell",
		"-rw-r--r-- /share/bash-completion/completions/adlock", "-rw-r--r-- /share/fish/vendor_completions.d/adlock.fish",
		"-rw-r--r-- /share/zsh/site-functions/_adlock",
	}
	if !slices.Equal(got, want) || manual < 5 {
		t.Errorf("installed are %d pages of the manual and %q, want %q", manual, got, want)
	}
	for _, file := range []string{"adlock.sh", "shell"} {
		text, err := os.ReadFile(stage + "/opt/adlock/lib/adlock/" + file)
		if err != nil || strings.Count(string(text), "\n_adlock_installed='/opt/adlock/bin/adlock'\n") != 1 {
			t.Errorf("%s does not know its helper: %v", file, err)
		}
	}
	example, err := os.ReadFile(stage + "/opt/adlock/share/doc/adlock/README.md")
	if err != nil || !strings.Contains(string(example), ". /opt/adlock/lib/adlock/adlock.sh") || strings.Contains(string(example), "/usr/local/lib/adlock") || !strings.Contains(string(example), "](examples/README.md)") {
		t.Errorf("the documentation does not know where things are: %v", err)
	}
	if now := tr.files(filepath.Join(tr.dir, "build")); !slices.Equal(now, built) {
		t.Errorf("what was built has become %q", now)
	}
}

func TestUninstallRemovesWhatInstallMadeAndNothingElse(t *testing.T) {
	tr, stage := newTree(t), t.TempDir()
	other := filepath.Join(stage, "usr/local/bin/another")
	must.Do(tr, os.MkdirAll(filepath.Dir(other), 0o755))
	must.Do(tr, need.WriteProgram(other, nil, 0o755))
	for _, target := range []string{"install", "install", "uninstall", "uninstall"} {
		if r := tr.make(target, "DESTDIR="+stage); r.Status != 0 {
			t.Fatalf("%s: %+v", target, r)
		}
	}
	if got := tr.files(stage); !slices.Equal(got, []string{"-rwxr-xr-x /usr/local/bin/another"}) {
		t.Errorf("left are %q", got)
	}
	if _, err := os.Stat(stage + "/usr/local/lib/adlock"); err == nil {
		t.Error("the library's directory is left")
	}
	if _, err := os.Stat(stage + "/usr/local/share/doc/adlock"); err == nil {
		t.Error("the documentation's directory is left")
	}
}

// A package has LICENSE and CHANGELOG.md under other names, so no page leads to them.
func TestTheInstalledPagesLinkToWhatIsInstalled(t *testing.T) {
	tr, stage := newTree(t), t.TempDir()
	if r := tr.make("install", "DESTDIR="+stage); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	docs := stage + "/usr/local/share/doc/adlock"
	for _, name := range []string{"LICENSE", "CHANGELOG.md"} {
		must.Do(tr, os.Rename(filepath.Join(docs, name), filepath.Join(docs, "away-"+name)))
	}
	count := 0
	must.Do(tr, filepath.WalkDir(docs, func(page string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		text, err := os.ReadFile(page)
		for _, link := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(string(text), -1) {
			count++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		return err
	}))
	if count < 15 {
		t.Errorf("only %d links were found", count)
	}
}

func TestAnInstalledLibraryFindsItsHelper(t *testing.T) {
	tr, prefix := newTree(t), t.TempDir()
	if r := tr.make("install", "PREFIX="+prefix); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	script := ". " + prefix + "/lib/adlock/adlock.sh && adlock_get a b && echo got && adlock_release"
	r := helper.Command{Args: []string{"sh", "-c", script, "job"}, Env: []string{"PATH=" + tr.path, "ADLOCK_DIR=" + helper.Dir(t)}}.Run(t)
	if r.Status != 0 || r.Out != "got\n" || r.Err != "" {
		t.Errorf("%+v", r)
	}
}

func TestNothingIsInstalledUntilAllIsBuilt(t *testing.T) {
	tr, stage := newTree(t), t.TempDir()
	must.Do(tr, os.Remove(filepath.Join(tr.dir, "build", "adlock-locksmith")))
	r := tr.make("install", "DESTDIR="+stage)
	if r.Status == 0 || !strings.Contains(r.Out+r.Err, "go") {
		t.Errorf("%+v", r)
	}
	if got := tr.files(stage); len(got) > 0 {
		t.Errorf("installed are %q", got)
	}
}

func TestWhereAFileIsMissingNothingIsInstalled(t *testing.T) {
	tr, stage := newTree(t), t.TempDir()
	must.Do(tr, os.Remove(filepath.Join(tr.dir, "README.md")))
	r := tr.make("install", "DESTDIR="+stage)
	if r.Status == 0 || !strings.Contains(r.Err, "adlock: README.md: is missing") {
		t.Errorf("%+v", r)
	}
	if got := tr.files(stage); len(got) > 0 {
		t.Errorf("installed are %q", got)
	}
}

// A line for each directory that cannot be made would hide the line that matters.
func TestWhereNothingCanBeInstalledOneLineSaysSo(t *testing.T) {
	tr := newTree(t)
	r := tr.make("install", "PREFIX="+filepath.Join(tr.dir, "build", "adlock"))
	said := slices.DeleteFunc(strings.Split(strings.TrimSpace(r.Err), "\n"), func(line string) bool { return strings.HasPrefix(line, "make: ") })
	if r.Status == 0 || len(said) != 1 || !strings.Contains(said[0], "Not a directory") {
		t.Errorf("%+v", r)
	}
}

func TestAnOldBuildIsInstalledWithAWarning(t *testing.T) {
	tr, stage := newTree(t), t.TempDir()
	long := time.Now().AddDate(-30, 0, 0)
	for _, c := range []struct {
		built time.Time
		said  bool
	}{{long, true}, {time.Now().AddDate(30, 0, 0), false}} {
		must.Do(tr, os.Chtimes(filepath.Join(tr.dir, "build", "adlock"), c.built, c.built))
		if r := tr.make("install", "DESTDIR="+stage); r.Status != 0 || strings.Contains(r.Err, "sources are newer") != c.said {
			t.Errorf("built %v: %+v", c.built, r)
		}
	}
}

func TestUninstallIsRefusedWhileACrontabNamesShellOrHelper(t *testing.T) {
	tr, stage := newTree(t), filepath.Join(t.TempDir(), "a stage")
	if r := tr.make("install", "DESTDIR="+stage); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	installed := tr.files(stage)
	const shell = "/usr/local/lib/adlock/shell"
	for path, line := range map[string]string{
		"/etc/crontab": "SHELL=" + shell, "/etc/cron.d/a b": "\t'SHELL' = \"" + shell + "\"  ",
		"/var/spool/cron/crontabs/me": "PATH=/bin\nSHELL=" + shell + "\n* * * * * x", "/var/spool/cron/me": "SHELL = '" + shell + "'",
		"/etc/crontabs/root": "SHELL=" + shell + "\r",
	} {
		file := stage + path
		must.Do(tr, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(tr, os.WriteFile(file, []byte(line+"\n"), 0o600))
		r := tr.make("uninstall", "DESTDIR="+stage)
		if want := "adlock: " + shell + ": is the SHELL of these crontabs"; r.Status == 0 || !strings.Contains(r.Err, want) || !strings.Contains(r.Err, "\n"+file+"\n") {
			t.Errorf("%s: %+v", path, r)
		}
		must.Do(tr, os.Remove(file))
		if now := tr.files(stage); !slices.Equal(now, installed) {
			t.Fatalf("%s: left are %q", path, now)
		}
	}
	for path, line := range map[string]string{
		"/etc/cron.d/a b": "* * * * * root /usr/local/bin/adlock run --name n -- job", "/var/spool/cron/crontabs/me": "PATH=/usr/local/bin:/bin\n@daily adlock\trun job",
		"/var/spool/cron/me": "* * * * * cd /tmp && /bin/sh -c '/usr/local/bin/adlock run job'",
	} {
		file := stage + path
		must.Do(tr, os.WriteFile(file, []byte(line+"\n"), 0o600))
		r := tr.make("uninstall", "DESTDIR="+stage)
		if want := "adlock: /usr/local/bin/adlock: runs lines of these crontabs"; r.Status == 0 || !strings.Contains(r.Err, want) || !strings.Contains(r.Err, "\n"+file+"\n") || strings.Contains(r.Err, "SHELL") {
			t.Errorf("%s: %+v", path, r)
		}
		must.Do(tr, os.Remove(file))
		if now := tr.files(stage); !slices.Equal(now, installed) {
			t.Fatalf("%s: left are %q", path, now)
		}
	}
	must.Do(tr, os.WriteFile(stage+"/etc/crontab", []byte("#SHELL="+shell+"\nSHELL=/opt"+shell+"\nMYSHELL="+shell+"\n* * * * * SHELL="+shell+" x\n"+
		" # * * * * * adlock run x\n* * * * * /usr/bin/adlock run x\n* * * * * my-adlock run x\n* * * * * adlock running\n* * * * * /usr/local/bin_adlock run x\n"), 0o644))
	if r := tr.make("uninstall", "DESTDIR="+stage); r.Status != 0 || len(tr.files(stage)) != 1 {
		t.Errorf("with a crontab that does not name it: %+v, left are %q", r, tr.files(stage))
	}
}
