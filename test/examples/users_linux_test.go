package examples

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/helper"
	"adlock/test/need"
)

// users is a place that www-data may enter, with the lines of the crontabs of both.
func users(t *testing.T) (p *place, www int, lines []string) {
	t.Helper()
	need.Root(t)
	need.Tools(t, "/usr/sbin/runuser", "setpriv")
	account, err := user.Lookup("www-data")
	if err != nil {
		need.Skip(t, err)
	}
	www, err = strconv.Atoi(account.Uid)
	must(t, err)
	dir, err := os.MkdirTemp("", "adlock-users-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	p = placeIn(t, dir)
	for _, name := range []string{"adlock", "adlock-report"} {
		must(t, exec.Command("cp", filepath.Join(filepath.Dir(helper.Binary(t)), name), p.path("bin")).Run())
	}
	p.write("notes", "", 0o666)
	must(t, os.Chmod(p.path("notes"), 0o666)) // whatever the umask is
	for _, name := range []string{"site-refresh", "site-rebuild"} {
		p.command(name, `echo `+name+`:$(id -u) >>{dir}/notes`)
	}
	p.example("two-users", "two-users", "/var/lib/adlock-www-data", p.path("locks"))
	for line := range strings.Lines(p.read("two-users")) {
		if fields := strings.SplitN(line, "  ", 2); len(fields) == 2 && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(fields[1]))
		}
	}
	if len(lines) != 2 {
		t.Fatalf("lines: %q", lines)
	}
	return p, www, lines
}

// asCron is a line as cron starts it: with hardly any variables, the user's HOME, and here
// /usr/bin, into which the package puts adlock.
func (p *place) asCron(who string, line string, more ...string) helper.Command {
	home := map[string]string{"root": "/root", "www-data": "/var/www"}[who]
	words := append([]string{"env", "-i", "HOME=" + home, "LOGNAME=" + who, "SHELL=/bin/sh", "ADLOCK_HOST=" + host,
		"PATH=" + p.path("bin") + ":/usr/bin:/bin"}, more...)
	if who != "root" {
		words = append([]string{"setpriv", "--reuid=" + who, "--regid=" + who, "--init-groups"}, words...)
	}
	return helper.Command{Dir: "/", Args: append(words, "sh", "-c", line)}
}

func TestTheJobOfTwoUsersRunsAsOneOfThem(t *testing.T) {
	p, www, lines := users(t)
	dir := "ADLOCK_DIR=" + p.path("locks")
	must(t, os.Mkdir(p.path("locks"), 0o700))
	must(t, os.Chown(p.path("locks"), www, www))
	p.command("site-refresh", await+`echo site-refresh:$(id -u) >>{dir}/notes; await go; echo done >>{dir}/notes`)

	hers := p.asCron("www-data", lines[0], dir).Start(t)
	p.noted("site-refresh")
	roots := p.asCron("root", lines[1]).Start(t)
	helper.Eventually(t, "root's line waits for www-data's", func() bool { return len(p.events(runlog.Wait)) == 1 })
	if r := p.asCron("www-data", lines[0], dir).Run(t); r.Status != 75 || r.Out+r.Err != "" {
		t.Errorf("a second line: %+v", r)
	}
	p.write("go", "", 0o644)
	p.ends(hers, 0)
	p.ends(roots, 0)
	if said := hers.Output() + roots.Output(); said != "" {
		t.Errorf("said %q", said)
	}
	id := strconv.Itoa(www)
	p.wantNotes("site-refresh:" + id + " done site-rebuild:" + id)
}

// The home of www-data is root's, and root is refused a directory of www-data's.
func TestWithoutADirectoryOfItsOwnTheJobOfTwoUsersIsRefused(t *testing.T) {
	p, www, lines := users(t)
	if r := p.asCron("www-data", lines[0]).Run(t); r.Status != 73 || !strings.Contains(r.Err, "/var/www/.local/state/adlock: ") {
		t.Errorf("%+v", r)
	}
	must(t, os.Mkdir(p.path("locks"), 0o700))
	must(t, os.Chown(p.path("locks"), www, www))
	r := p.asCron("root", lines[0], "ADLOCK_DIR="+p.path("locks")).Run(t)
	r.Refused(t, 77, "lock directory belongs to another user (run as that user, ")
	p.wantNotes("")
}
