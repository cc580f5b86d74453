package cron

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// users makes a place that www-data may enter. The lines are from the crontabs of www-data and root.
func users(t *testing.T) (p *place, www int, lines []string) {
	t.Helper()
	need.Root(t)
	need.Tools(t, "/usr/sbin/runuser", "setpriv")
	need.Namespaces(t, "--mount")
	account, err := user.Lookup("www-data")
	if err != nil {
		need.Skip(t, err)
	}
	www = must.Get(strconv.Atoi(account.Uid))(t)
	dir := must.Get(os.MkdirTemp("", "adlock-users-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.Do(t, os.Chmod(dir, 0o755))
	p = placeIn(t, dir)
	for _, name := range []string{"adlock", "adlock-report"} {
		must.Do(t, exec.Command("cp", filepath.Join(filepath.Dir(helper.Binary(t)), name), p.path("bin")).Run())
	}
	p.write("notes", "", 0o666)
	must.Do(t, os.Chmod(p.path("notes"), 0o666)) // whatever the umask is
	for _, name := range []string{"site-refresh", "site-rebuild"} {
		p.command(name, `echo `+name+`:$(id -u) >>{dir}/notes`)
	}
	must.Do(t, os.Mkdir(p.path("state"), 0o755))
	must.Do(t, os.Symlink("state/adlock-"+account.Uid, p.path("locks")))
	p.example("two-users", "two-users")
	must.Do(t, os.Mkdir(p.path("site"), 0o755))
	for line := range strings.Lines(strings.ReplaceAll(p.read("two-users"), "/srv/site", p.path("site"))) {
		if fields := strings.SplitN(line, "  ", 2); len(fields) == 2 && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(fields[1]))
		}
	}
	if len(lines) != 2 {
		t.Fatalf("lines: %q", lines)
	}
	return p, www, lines
}

// asCron returns a line as cron starts it, with few variables and the user's HOME. The line has a /var/lib of
// its own, and the place's bin stands for /usr/bin, into which the package puts adlock.
func (p *place) asCron(user string, line string, more ...string) helper.Command {
	home := map[string]string{"root": "/root", "www-data": "/var/www"}[user]
	words := append([]string{"env", "-i", "HOME=" + home, "LOGNAME=" + user, "SHELL=/bin/sh", "ADLOCK_HOST=" + host,
		"PATH=" + p.path("bin") + ":/usr/bin:/bin"}, more...)
	if user != "root" {
		words = append([]string{"setpriv", "--reuid=" + user, "--regid=" + user, "--init-groups"}, words...)
	}
	words = append([]string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /var/lib && exec "$@"`, p.path("state")}, words...)
	return helper.Command{Dir: "/", Args: append(words, "sh", "-c", line)}
}

func TestTheJobsOfTwoUsersTakeTurns(t *testing.T) {
	p, www, lines := users(t)
	id := strconv.Itoa(www)
	p.asCron("root", "adlock init www-data").Run(t).Is(t, 0, "www-data: /var/lib/adlock-"+id+"\n", "…")
	p.command("site-refresh", await+`echo site-refresh:$(id -u) >>{dir}/notes; await go; echo done >>{dir}/notes`)

	first := p.asCron("www-data", lines[0]).Start(t)
	p.noted("site-refresh")
	second := p.asCron("root", lines[1]).Start(t)
	helper.Eventually(t, "root's line waits for www-data's", func() bool {
		log, _ := os.ReadFile(p.path("state") + "/adlock/program." + host + ".runlog")
		return strings.Contains(string(log), "event=wait")
	})
	p.asCron("www-data", lines[0]).Run(t).Denied(t)
	p.write("go", "", 0o644)
	first.Is(p, 0, "…")
	second.Is(p, 0, "…")
	check.Equal(t, "said", first.Output()+second.Output(), "")
	p.wantNotes("site-refresh:" + id + " done site-rebuild:0")
}
