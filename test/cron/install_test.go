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

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// tools lists the programs that an installation may use.
var tools = []string{"make", "sh", "sed", "grep", "sort", "install", "chmod", "mv", "rm", "rmdir", "find", "git"}

// tree is a copy of the project's directory after `make build`, with a PATH that has no Go.
type tree struct {
	*testing.T
	dir, path string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	need.Tools(t, tools...)
	tr := &tree{t, t.TempDir(), t.TempDir()}
	for _, tool := range tools {
		must.Do(t, os.Symlink(must.Get(exec.LookPath(tool))(t), filepath.Join(tr.path, tool)))
	}
	must.Do(tr, os.Mkdir(filepath.Join(tr.dir, "build"), 0o755))
	must.Do(tr, os.Mkdir(filepath.Join(tr.dir, "test"), 0o755))
	for _, part := range []string{"Makefile", "sh", "cmd", "lib", "test/examples", "go.mod", "README.md", "CHANGELOG.md", "LICENSE"} {
		must.Do(t, os.Symlink(filepath.Join(helper.Root(), part), filepath.Join(tr.dir, part)))
	}
	for _, program := range []string{"adlock", "adlock-report", "adlock-locksmith"} {
		text := must.Get(os.ReadFile(helper.Binary(t)))(t) // any program will do
		must.Do(tr, need.WriteProgram(filepath.Join(tr.dir, "build", program), text, 0o755))
	}
	return tr
}

func (t *tree) make(words ...string) helper.Result {
	t.Helper()
	return helper.Command{Args: append([]string{"make", "--no-print-directory"}, words...), Dir: t.dir, Env: []string{"PATH=" + t.path, "MAKEFLAGS=", "MAKELEVEL="}, Limit: 4 * helper.Patience}.Run(t)
}

func (t *tree) want(words ...string) {
	t.Helper()
	if r := t.make(words...); r.Status != 0 {
		t.Fatalf("%q: %+v", words, r)
	}
}

// files returns the files below a directory, with their modes.
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

// In the library or in a command of the Makefile, the shell would take such a name for another name, or for a command.
func TestMakeRefusesADirectoryNameThatCannotBeQuoted(t *testing.T) {
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
	tr.want("install", "DESTDIR="+filepath.Join(t.TempDir(), "o'neil & a|b"))
	for _, words := range [][]string{{"PREFIX=rel"}, {"PREFIX=rel", "DESTDIR=" + t.TempDir() + "/"}, {"PREFIX=/usr", "bindir=bin"}} {
		if r := tr.make(append(words, "install")...); r.Status == 0 || !strings.Contains(r.Err, ": want a full path from / on\n") {
			t.Errorf("%q: %+v", words, r)
		}
	}
	helper.Absent(t, filepath.Join(tr.dir, "pwned"))
}

func TestInstallNeedsNoGoAfterABuild(t *testing.T) {
	tr, stage := newTree(t), filepath.Join(t.TempDir(), "a stage")
	built := tr.files(filepath.Join(tr.dir, "build"))
	tr.want("install", "DESTDIR="+stage, "PREFIX=/opt/adlock")
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
	for name, want := range map[string]string{
		"README.md": ". /opt/adlock/lib/adlock/adlock.sh", "examples/legacy-script": "\n. /opt/adlock/lib/adlock/adlock.sh",
		"examples/systemd/site-refresh.service": "=/opt/adlock/bin/adlock run", "examples/park/setup": "\nlib=/usr/lib/adlock ",
	} {
		if text, err := os.ReadFile(stage + "/opt/adlock/share/doc/adlock/" + name); err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "/usr/local/lib/adlock") {
			t.Errorf("%s: no %q: %v", name, want, err)
		}
	}
	check.Slices(t, "what was built", tr.files(filepath.Join(tr.dir, "build")), built)
}

func TestUninstallRemovesWhatInstallMadeAndNothingElse(t *testing.T) {
	tr, stage := newTree(t), t.TempDir()
	other := filepath.Join(stage, "usr/local/bin/another")
	must.Do(tr, os.MkdirAll(filepath.Dir(other), 0o755))
	must.Do(tr, need.WriteProgram(other, nil, 0o755))
	for _, target := range []string{"install", "install", "uninstall", "uninstall"} {
		tr.want(target, "DESTDIR="+stage)
	}
	check.Slices(t, "what is left", tr.files(stage), []string{"-rwxr-xr-x /usr/local/bin/another"})
	for _, dir := range []string{"/usr/local/lib/adlock", "/usr/local/share/doc/adlock"} {
		helper.Absent(t, stage+dir)
	}
}

// A package has LICENSE and CHANGELOG.md under other names, so no page leads to them.
func TestLinksInInstalledPagesLeadToInstalledFiles(t *testing.T) {
	tr, stage := newTree(t), t.TempDir()
	tr.want("install", "DESTDIR="+stage)
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

func TestInstallCopiesNothingIfAFileIsMissing(t *testing.T) {
	for file, says := range map[string]string{"build/adlock-locksmith": "go", "README.md": "README.md: is missing"} {
		tr, stage := newTree(t), t.TempDir()
		must.Do(t, os.Remove(filepath.Join(tr.dir, file)))
		r := tr.make("install", "DESTDIR="+stage)
		if r.Status == 0 || !strings.Contains(r.Out+r.Err, says) || len(tr.files(stage)) > 0 {
			t.Errorf("%s: %+v; installed are %q", file, r, tr.files(stage))
		}
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

func TestUninstallIsRefusedWhileACrontabUsesShellOrHelper(t *testing.T) {
	tr, stage := newTree(t), filepath.Join(t.TempDir(), "a stage")
	tr.want("install", "DESTDIR="+stage)
	installed := tr.files(stage)
	const shell, runsLines = "/usr/local/lib/adlock/shell", "adlock: /usr/local/bin/adlock: runs lines of these crontabs"
	const isShell = "adlock: " + shell + ": is the SHELL of these crontabs"
	for _, c := range []struct{ path, line, says, not string }{
		{"/etc/crontab", "SHELL=" + shell, isShell, "runs"},
		{"/etc/cron.d/a b", "\t'SHELL' = \"" + shell + "\"  ", isShell, "runs"},
		{"/var/spool/cron/crontabs/me", "PATH=/bin\nSHELL=" + shell + "\n* * * * * x", isShell, "runs"},
		{"/var/spool/cron/me", "SHELL = '" + shell + "'", isShell, "runs"},
		{"/etc/crontabs/root", "SHELL=" + shell + "\r", isShell, "runs"},
		{"/var/spool/cron/tabs/root", "SHELL=" + shell, isShell, "runs"},
		{"/var/cron/tabs/root", "@daily adlock run job", runsLines, "SHELL"},
		{"/etc/cron.d/a b", "* * * * * root /usr/local/bin/adlock run --name n -- job", runsLines, "SHELL"},
		{"/var/spool/cron/crontabs/me", "PATH=/usr/local/bin:/bin\n@daily adlock\trun job", runsLines, "SHELL"},
		{"/var/spool/cron/me", "* * * * * cd /tmp && /bin/sh -c '/usr/local/bin/adlock run job'", runsLines, "SHELL"},
		{"/etc/crontab", "* * * * * root adlock metrics -o /srv/adlock.prom", runsLines, "SHELL"},
		{"/etc/crontab", "* * * * * root job | /usr/local/bin/adlock mkatomic --replace out", runsLines, "SHELL"},
		{"/etc/crontab", "* * * * * root . /usr/local/lib/adlock/adlock.sh; adlock_with a b -- job", runsLines, "SHELL"},
	} {
		file := stage + c.path
		must.Do(tr, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(tr, os.WriteFile(file, []byte(c.line+"\n"), 0o600))
		r := tr.make("uninstall", "DESTDIR="+stage)
		named := strings.Contains(r.Err, c.says) && strings.Contains(r.Err, "\n"+file+"\n")
		if r.Status == 0 || !named || strings.Contains(r.Err, c.not) {
			t.Errorf("%s: %+v", c.path, r)
		}
		must.Do(tr, os.Remove(file))
		check.Slices(t, "what is left with "+c.path, tr.files(stage), installed)
	}
	must.Do(tr, os.WriteFile(stage+"/etc/crontab", []byte("#SHELL="+shell+"\nSHELL=/opt"+shell+"\nMYSHELL="+shell+"\n* * * * * SHELL="+shell+" x\n"+
		" # * * * * * adlock run x\n* * * * * /usr/bin/adlock run x\n* * * * * my-adlock run x\n* * * * * adlock running\n* * * * * /usr/local/bin_adlock run x\n"+
		"* * * * * tar cf adlock /home; cd /srv/adlock && stop; . /usr/lib/adlock/adlock.sh\n"), 0o644))
	if r := tr.make("uninstall", "DESTDIR="+stage); r.Status != 0 || len(tr.files(stage)) != 1 {
		t.Errorf("with a crontab that does not name it: %+v, left are %q", r, tr.files(stage))
	}
	// An ordinary user may not list the directory of crontabs.
	own := []string{"PREFIX=" + stage, "sysconfdir=" + stage + "/etc"}
	tr.want(append(own, "install")...)
	must.Do(tr, need.WriteProgram(filepath.Join(tr.path, "crontab"), []byte("#!/bin/sh\necho 'SHELL="+stage+"/lib/adlock/shell'"), 0o755))
	if r := tr.make(append(own, "uninstall")...); r.Status == 0 || !strings.Contains(r.Err, "\ncrontab -l\n") || strings.Contains(r.Err, "runs") {
		t.Errorf("with the user's own crontab: %+v", r)
	}
}
