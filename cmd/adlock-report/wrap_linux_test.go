package main

import (
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/lib/crontab"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

const backups = "# backups\nMAILTO=root\n\n17 * * * *\tcd / && run-parts --report /etc/cron.hourly\n@reboot warm-up\n@daily flock -n /run/x true\n0 3 * * 7 rsync -a /srv /backup%no input"

func (p place) wrap(t *testing.T, text string, args ...string) helper.Result {
	t.Helper()
	c := p.command(append([]string{"wrap"}, args...)...)
	c.Stdin = text
	return c.Run(t)
}

func TestACrontabIsWrappedAndUnwrappedInAPipe(t *testing.T) {
	p := newPlace(t)
	wrapped := p.wrap(t, backups, "--expire-after", "from-schedule")
	want := strings.NewReplacer(
		"cd / && run-parts --report /etc/cron.hourly", p.program+" run --name cron.hourly-2439093262 --expire-after 1h30m -- /bin/sh -c 'cd / && run-parts --report /etc/cron.hourly'",
		"rsync", p.program+" run --name rsync-3336491287 --expire-after 1w3d12h -- rsync").Replace(backups)
	const said = "adlock: line 5: left as it is: starts at boot: it may be meant to run for ever, and is not to be ended\n" +
		"adlock: line 6: left as it is: is under flock already\nadlock: standard input: lines wrapped: 2\n"
	wrapped.Is(t, 0, want, said)
	p.wrap(t, wrapped.Out, "--unwrap", "-").Is(t, 0, backups, "adlock: standard input: lines unwrapped: 2\n")
}

// The other end of the pipe is `crontab -`, which would install an empty crontab.
func TestWrapCopiesInputThatItRefuses(t *testing.T) {
	p := newPlace(t)
	const users = "17 * * * *\troot\tcd / && run-parts /etc/cron.hourly\n"
	const script = "#!/bin/sh\nif true; then\n\techo x\nfi\n"
	for _, c := range []struct{ text, args, says string }{
		{script, "", `adlock: standard input: is no crontab: line 2: neither a comment nor a variable, `},
		{script, "--unwrap", `adlock: standard input: is no crontab: line 2: `},
		{users, "", `adlock: line 1: the command begins with "root", which is a user: a crontab with users is read with -u; in another, leave it out` + "\n"},
		{"@daily dumper-26 flock -n /run/d true\n@daily dumper-26 /bin/sh x\n", "", `adlock: line 1: the command begins with "dumper-26", and another command stands behind it: a crontab with users is read with -u; in another, write its full path` + "\n"},
		{backups, "--typo", "adlock: --typo: unknown option (adlock wrap --help lists them)\n"},
		{backups, "--expire-after=0", "adlock: --expire-after: \"0\": want a time such as 90m, auto or from-schedule\n"},
		{backups, "--shell --unwrap", "adlock: --unwrap: cannot go with --shell\n"},
		{backups, "--flock --shell", "adlock: --flock: cannot go with --shell\n"},
		{backups, "--shell --expire-after 5m", "adlock: --expire-after: cannot go with --shell\n"},
		{backups, "auto unwrap", `adlock: wrap: wants one FILE at most, got "unwrap"` + "\n"},
		{backups, "--diff=yes", "adlock: --diff: takes no value\n"},
		{"@daily sh x\n", "-u", `adlock: line 1: the user "sh" is a command: a crontab without users is read without -u` + "\n"},
		{strings.Repeat("# all is comment\n", 1<<18), "", "adlock: standard input: is no crontab: it has 4194304 bytes or more\n"},
	} {
		r := p.wrap(t, c.text, strings.Fields(c.args)...)
		if r.Status != 64 || r.Out != c.text || !strings.HasPrefix(r.Err, c.says) || strings.Count(r.Err, "\n") != 1 {
			t.Errorf("%.40q %s: status %d: %.200q\n%s", c.text, c.args, r.Status, r.Out, r.Err)
		}
	}
	p.wrap(t, backups, "from-schedule").Is(t, 69, backups, "adlock: from-schedule: open: no such file or directory\n")
}

// The helper is alone here, as if half of an installation was removed, or is being replaced.
func TestWrapInAPipeCopiesItsInputIfAProgramIsMissing(t *testing.T) {
	dir := t.TempDir()
	alone := filepath.Join(dir, "adlock")
	must(t, os.Link(newPlace(t).program, alone))
	wants := map[string]string{"": backups, "--unwrap": backups, "-u -": backups, "--expire-after 90m": backups, "--diff": "", alone: ""}
	for _, broken := range []bool{false, true} {
		if broken {
			must(t, need.WriteProgram(filepath.Join(dir, "adlock-report"), []byte("#!/none\n"), 0o755))
		}
		for args, want := range wants {
			c := helper.Command{Args: append([]string{alone, "wrap"}, strings.Fields(args)...), Env: []string{"PATH=/none"}, Stdin: backups}
			if r := c.Run(t); r.Status != 69 || r.Out != want || strings.Count(r.Err, "\n") != 1 {
				t.Errorf("%q, broken %v: status %d: %s%s", args, broken, r.Status, r.Out, r.Err)
			}
		}
	}
}

func TestWrapReportsASettingThatCronDoesNotExpand(t *testing.T) {
	p := newPlace(t)
	const says = "adlock: line 1: cron passes $HOME/locks on as it stands: no job below it ever runs; write the full path\n"
	if r := p.wrap(t, "ADLOCK_DIR=$HOME/locks\nX=$HOME\n@daily x\n"); r.Status != 0 || !strings.HasSuffix(r.Err, says) || strings.Count(r.Err, "cron passes") != 1 {
		t.Errorf("%+v", r)
	}
}

// A shell may read its script from standard input: wrap must leave the rest of the script to it.
func TestAFailedWrapOfAFilePrintsNothing(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(file, []byte("fi\n"), 0o600))
	for args, want := range map[string]struct {
		status int
		says   string
	}{
		file: {64, file + ": is no crontab: line 1: "}, file + " x": {64, `wrap: wants one FILE at most, got "x"`},
		"/none":        {69, "/none: open: no such file or directory\n"},
		file + "/none": {69, file + "/none: open: not a directory\n"},
		"/":            {64, "/: is a directory\n"}, "--expire-after 90 " + file: {64, "--expire-after: 90: say 90s or 90m"},
	} {
		r := p.wrap(t, "@daily x\n", strings.Fields(args)...)
		if r.Status != want.status || r.Out != "" || !strings.HasPrefix(r.Err, "adlock: "+want.says) {
			t.Errorf("%s: %+v, want %+v", args, r, want)
		}
	}
	for _, refused := range []string{"--diff", "--diff --typo", "--diff --shell --unwrap"} {
		p.wrap(t, "fi\n", strings.Fields(refused)...).Is(t, 64, "", "…")
	}
}

func TestWrapWithDiffPrintsAPatchAndChangesNothing(t *testing.T) {
	need.Tools(t, "patch")
	p := newPlace(t)
	for _, text := range []string{backups, backups + "\n", strings.Repeat("# x\n", 20) + "@daily x\r\n" + strings.Repeat("# y\n", 20) + "@daily z"} {
		file := filepath.Join(t.TempDir(), "crontab")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		diff := p.wrap(t, "", "--diff", file)
		if diff.Status != 0 || !strings.Contains(diff.Err, "adlock: "+file+": lines to wrap: ") {
			t.Fatalf("status %d: %s", diff.Status, diff.Err)
		}
		if now, _ := os.ReadFile(file); string(now) != text {
			t.Fatal("--diff changed the file")
		}
		patch := helper.Command{Args: []string{"patch", "--binary", "-s", file}, Stdin: diff.Out}.Run(t)
		now, _ := os.ReadFile(file)
		if want := p.wrap(t, text).Out; patch.Status != 0 || string(now) != want {
			t.Errorf("patch %d %s gives\n%q, want\n%q", patch.Status, patch.Out+patch.Err, now, want)
		}
	}
	p.wrap(t, "# nothing\n", "--diff").Is(t, 0, "", "…")
}

// Each job runs before and after wrap, started as cron does, with the real helper.
func TestAWrappedJobKeepsItsInputAndOutput(t *testing.T) {
	p := newPlace(t)
	dir := t.TempDir()
	must(t, need.WriteProgram(filepath.Join(dir, "plain"), []byte("echo \"$0:$#:$*\"; exit 9\n"), 0o755)) // without a #! line
	for _, line := range []string{
		`cat%first line%second \% line%%`, `cat`, `cat;cat%x`, dir + `/plain a "b  c"`, `./plain $HOME ~ *`, `exit 3`, `kill -9 $$`, `echo it\'s "100\%"; echo 'don'\''t' >&2`, `printf '\%s\\n' a b`,
		`A=1; export A; env | grep -c ADLOCK_NAME`, `test -t 0 || echo no terminal`, `cat <&0 | tr a-z A-Z%piped`, `(exit 4)`, `sh -c 'exit 5'`, `false || plain`, `. ./plain`, `trap 'echo bye' EXIT; exit 6`, `nosuch-command`, `expr 5 \% 3`,
		`echo $((7 \% 4)) # a comment`, `cd /; pwd`, `umask 077; umask`, `echo $SHELL`, `echo 'a' \`, `for i in 1 2; do read x; echo "$i $x"; done%one%two`,
	} {
		for _, shell := range []string{"/bin/sh", "/bin/bash"} {
			before := "SHELL=" + shell + "\n* * * * * " + line + "\n"
			after := p.wrap(t, before)
			if after.Status != 0 || after.Out == before {
				t.Fatalf("%s: %s", line, after.Err)
			}
			want, got := p.cron(t, dir, shell, before), p.cron(t, dir, shell, after.Out)
			if got.Out != want.Out || got.Status != want.Status || alike(got.Err) != alike(want.Err) {
				t.Errorf("%s under %s:\n%+v, before\n%+v", line, shell, got, want)
			}
		}
	}
}

var elsewise = regexp.MustCompile(`(?m)^.*(not found|no such file or directory|Killed).*\n`)

// alike drops the lines that the shell and adlock word differently.
func alike(text string) string { return elsewise.ReplaceAllString(text, "") }

// cron starts the last line of a crontab as Debian's cron does.
func (p place) cron(t *testing.T, dir, shell, text string) helper.Result {
	t.Helper()
	lines := crontab.Read(text, false)
	l := lines[len(lines)-1]
	unescape := strings.NewReplacer(`\\`, `\`, `\%`, `%`)
	newlines := strings.NewReplacer(`\%`, `%`, `%`, "\n")
	c := p.command(shell, "-c", unescape.Replace(l.Command))
	c.Args, c.Dir = c.Args[1:], dir
	c.Env = append(c.Env, "SHELL="+shell, "HOME=/", "PATH=/usr/bin:/bin")
	if l.Input != "" {
		c.Stdin = newlines.Replace(l.Input[1:]) + "\n"
	}
	return c.Run(t)
}

// linked puts the programs into a directory, and returns the helper's path there.
func (p place) linked(t *testing.T, dir string) string {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"adlock", "adlock-report"} {
		must(t, os.Link(filepath.Join(filepath.Dir(p.program), name), filepath.Join(dir, name)))
	}
	return filepath.Join(dir, "adlock")
}

// If wrap changed the line of such a job, the job would be refused (73) from then on.
func TestWrapLeavesJobsOfUsersWhoCanMakeNoLockDirectory(t *testing.T) {
	need.Root(t)
	p := newPlace(t)
	const line = "@daily nobody x\n"
	left := p.wrap(t, line+"@daily root y\n", "-u")
	if left.Status != 0 || !strings.HasPrefix(left.Out, line+"@daily root "+p.program) ||
		!strings.HasPrefix(left.Err, "adlock: line 1: left as it is: user \"nobody\" cannot make a lock directory at home; as root: adlock init nobody\n") {
		t.Errorf("status %d: %s%s", left.Status, left.Out, left.Err)
	}
	home := t.TempDir()
	must(t, os.Chmod(filepath.Dir(home), 0o755)) // the user has to reach it
	for _, owner := range []int{0, 65534} {
		must(t, os.Chown(home, owner, owner))
		r := p.wrap(t, "HOME="+home+"\n"+line, "-u")
		if wrapped := strings.Contains(r.Out, "adlock run"); r.Status != 0 || wrapped != (owner == 65534) {
			t.Errorf("with a home of %d: status %d: %s%s", owner, r.Status, r.Out, r.Err)
		}
	}
	if r := p.wrap(t, "ADLOCK_DIR=/srv/locks\n"+line, "-u"); !strings.Contains(r.Out, "adlock run") {
		t.Errorf("status %d: %s%s", r.Status, r.Out, r.Err)
	}
}

func TestWrapAddsAndRemovesTheShellLineInAPipe(t *testing.T) {
	p := newPlace(t)
	prefix := t.TempDir()
	p.program = p.linked(t, filepath.Join(prefix, "bin"))
	shell := filepath.Join(prefix, "lib/adlock/shell")
	text := strings.Replace(backups, "MAILTO=root\n", "MAILTO=root\nSHELL=/bin/bash\n", 1)
	p.wrap(t, text, "--shell").Is(t, 69, text, "adlock: wrap: the shell for crontabs is not installed beside …")
	must(t, os.MkdirAll(filepath.Dir(shell), 0o755))
	must(t, need.WriteProgram(shell, []byte(read(t, "../../sh/shell")), 0o755))
	guarded := p.wrap(t, text, "--shell")
	want := strings.Replace(text, "MAILTO=root\nSHELL=", "SHELL="+shell+"\nMAILTO=root\nADLOCK_SHELL=", 1)
	if guarded.Status != 0 || guarded.Out != want || guarded.Err != "adlock: standard input: lines wrapped: 3\n" {
		t.Fatalf("%+v", guarded)
	}
	p.wrap(t, guarded.Out, "--unwrap").Is(t, 0, text, "adlock: standard input: lines unwrapped: 3\n")
	p.wrap(t, guarded.Out, "--shell").
		Is(t, 64, guarded.Out, "adlock: line 2: the whole crontab is left as it is: is adlock's SHELL already\n…")
	for _, refused := range []string{"@daily : n ADLOCK_EXPIRE_AFTER=x ; job\n", "@daily : n ADLOCK_EXPIREAFTER=1h ; job\n", "ADLOCK_SLOTS=2\n@daily job\n"} {
		p.wrap(t, refused, "--shell").Is(t, 64, refused, "…: the whole crontab is left as it is: …")
	}
	const slots = "ADLOCK_SLOTS=2\n@daily job\n"
	p.wrap(t, slots).Is(t, 0, slots, "adlock: line 2: left as it is: ADLOCK_SLOTS: …")
	wrapped := p.wrap(t, text)
	both := p.wrap(t, strings.Replace(wrapped.Out, "@reboot", "@hourly y\n@reboot", 1), "--shell")
	p.wrap(t, both.Out, "--unwrap").Is(t, 0, strings.Replace(text, "@reboot", "@hourly y\n@reboot", 1), "…")
}

// A thread that reads with another user's rights may go on after its time is up.
func TestNoUserIsLookedUpWhileFilesAreRead(t *testing.T) {
	look := lookUp
	defer func() { lookUp = look }()
	as := func(_ string, do func() bool) bool {
		lookUp = func(name string) *user.User { t.Errorf("%s is looked up", name); return nil }
		defer func() { lookUp = look }()
		return do()
	}
	_, _, _ = homelessTest(as)("nobody", ""), dirOf("nobody", "", as), isFiled("nobody", "ADLOCK_DIR", as)
}
