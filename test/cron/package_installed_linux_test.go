//go:build soak

package cron

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// debian is a Debian with only the essential packages, apt and cron, in namespaces of its own
// and without a network: an installation changes nothing on this machine.
type debian struct {
	*testing.T
	root string
	init *helper.Process
}

// aptSources lists the sources of this machine's packages, in mmdebstrap's form.
const aptSources = `apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian'`

// boot is the first process of a debian. It reaps orphans, and ends a few minutes after a test that was killed.
const boot = `
set -e
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/run"
: >"$1/run/ready"
timeout 600 chroot "$1" /usr/sbin/cron -f
exit
`

// newDebian makes a debian with these packages added.
func newDebian(t *testing.T, more ...string) *debian {
	t.Helper()
	need.Root(t)
	need.Tools(t, "mmdebstrap", "apt-get", "unshare", "nsenter", "chroot", "timeout")
	need.Namespaces(t, "--mount", "--pid", "--fork", "--net")
	d := &debian{T: t, root: filepath.Join(t.TempDir(), "debian")}
	list := want(t, "sh", "-c", aptSources).Out
	if list == "" {
		need.Skip(t, "apt knows no source of Debian packages")
	}
	c := helper.Command{Args: []string{"mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=" + strings.Join(append([]string{"cron", "logrotate"}, more...), ","), "", d.root, "-"}, Stdin: list, Limit: long}
	if r := c.Run(t); r.Status != 0 {
		need.Skip(t, "no Debian is to be had:", r.Err)
	}
	d.init = helper.Command{Args: []string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "sh", "-c", boot, "sh", d.root}}.Start(t)
	helper.Eventually(t, "cron is up", func() bool { return d.init.Ended() || len(helper.Children(d.first())) > 0 })
	d.init.Lives(t)
	return d
}

// first returns the pid of the debian's first process, as seen from outside.
func (d *debian) first() int {
	if children := helper.Children(d.init.PID); len(children) > 0 {
		return children[0]
	}
	return -1
}

// run runs a shell script in the debian as root.
func (d *debian) run(script string) helper.Result {
	d.Helper()
	return helper.Command{Args: []string{"nsenter", "--target", itoa(d.first()), "--mount", "--pid", "--net",
		"chroot", d.root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive",
		"sh", "-c", script}, Limit: long}.Run(d)
}

// want runs a script, expects it to succeed, and returns its output.
func (d *debian) want(script string) string {
	d.Helper()
	r := d.run(script)
	if r.Status != 0 {
		d.Fatalf("%s: status %d\n%s%s", script, r.Status, r.Out, r.Err)
	}
	return r.Out
}

// bring copies a package into root's home, under a short name.
func (d *debian) bring(pattern, name string) {
	d.Helper()
	found, err := filepath.Glob(released(d.T) + "/build/" + pattern)
	if err != nil || len(found) != 1 {
		d.Fatalf("%s: %q, %v", pattern, found, err)
	}
	want(d.T, "cp", found[0], filepath.Join(d.root, "root", name))
}

// files lists all files of the debian that an administrator might find, without the databases of apt and dpkg.
func (d *debian) files() []string {
	d.Helper()
	return strings.Split(d.want(`find / -xdev -path /proc -prune -o -path /run -prune -o -path /tmp -prune -o -path /root -prune -o `+
		`-path /var/log -prune -o -path /var/cache -prune -o -path /var/lib/apt -prune -o -path /var/lib/dpkg -prune -o -print | sort`), "\n")
}

// within waits until the script prints the text, and returns how long that took.
func (d *debian) within(patience time.Duration, claim, script, says string) time.Duration {
	d.Helper()
	began := time.Now()
	helper.Within(d, patience, claim, func() bool { return strings.Contains(d.run(script).Out, says) })
	return time.Since(began)
}

// The first line is the one that guards the crontab. The job writes its pid, and waits for a file.
const packagedCrontab = `SHELL=/usr/lib/adlock/shell
* * * * * echo $$ >/root/job; until test -e /root/go; do sleep 0.1; done
`

func TestThePackageGuardsACrontabAndIsUpgradedAndRemoved(t *testing.T) {
	t.Parallel()
	released(t)
	d := newDebian(t)
	d.bring("older/*.deb", "older.deb")
	d.bring("release/*_amd64.deb", "newer.deb")
	d.want("mkdir -p /root /var/spool/cron/crontabs")
	before := d.files()

	// Two commands of the administrator, then the wait for cron's next minute.
	began := time.Now()
	d.want("cd /root && apt-get install -qq ./older.deb")
	d.want("crontab - <<'END'\n" + packagedCrontab + "END")
	commands := time.Since(began)
	d.within(100*time.Second, "the first guarded run shows in the status", "adlock status", "running")
	t.Logf("from a bare Debian to the first guarded run in adlock status: %.0f s, %.1f s of which without cron's minute",
		time.Since(began).Seconds(), commands.Seconds())
	if out := d.run("dpkg --verify adlock; adlock version").Out; !strings.Contains(out, "(older)") || strings.Contains(out, "missing") {
		t.Errorf("after the installation: %s", out)
	}

	// During the upgrade the job runs on, and keeps its lock.
	d.within(helper.Patience, "the job has said who it is", "cat /root/job", "\n")
	job := strings.TrimSpace(d.want("cat /root/job"))
	lock := d.want("cat /var/lib/adlock/lock.*")
	d.want("cd /root && apt-get install -qq ./newer.deb")
	helper.Contains(t, d.want("adlock version"), "(tried)")
	if now := d.want("kill -0 " + job + " && cat /var/lib/adlock/lock.* && adlock status"); !strings.HasPrefix(now, lock) || !strings.Contains(now, "running") {
		t.Errorf("after the upgrade the lock is\n%s\nand was\n%s", now, lock)
	}
	d.want("touch /root/go")
	d.within(helper.Patience, "the job has ended and its lock is released", "ls /var/lib/adlock; adlock log", "release")
	if out := d.run("ls /var/lib/adlock/lock.* 2>&-; adlock log --event lost,reclaim,takeover").Out; out != "" {
		t.Errorf("after the job:\n%s", out)
	}

	// The log shows events that logrotate has moved away.
	d.want("logrotate --state /root/state --force /etc/logrotate.d/adlock && adlock run --name after -- true")
	if out := d.want("adlock log"); !strings.Contains(out, "after") || strings.Count(out, "acquire") < 2 {
		t.Errorf("after logrotate the log tells\n%s", out)
	}

	d.mustStayWhileNamed()
	d.want("crontab -r && apt-get remove -qq adlock")
	if left := d.new(before); !slices.Contains(left, "/etc/logrotate.d/adlock") || slices.Contains(left, "/usr/bin/adlock") {
		t.Errorf("after the removal there are %q", left)
	}
	if r := d.run("apt-get purge -qq adlock"); r.Status != 0 || strings.Count(r.Out+r.Err, "adlock: /var/lib/adlock is left") != 1 {
		t.Errorf("the purge: %+v", r)
	}
	left := slices.DeleteFunc(d.new(before), func(path string) bool { return strings.HasPrefix(path, "/var/lib/adlock/") })
	check.Slices(t, "what is left by the purge", left, []string{"/var/lib/adlock"})
}

// mustStayWhileNamed expects that a removal is refused, and changes nothing.
func (d *debian) mustStayWhileNamed() {
	d.Helper()
	const where = "/etc/cron.d/site"
	d.want("crontab -l >/root/kept && crontab -r")
	for names, line := range map[string]string{"/usr/lib/adlock/shell": "$(cat /root/kept)", "/usr/bin/adlock": "0 0 * * * root adlock run --name n -- true"} {
		d.want("cat >" + where + " <<END\n" + line + "\nEND")
		before := d.files()
		for _, how := range []string{"apt-get remove -qq adlock", "apt-get purge -qq adlock"} {
			r := d.run(how)
			if said := r.Out + r.Err; r.Status == 0 || !strings.Contains(said, "adlock: "+names+": ") || !strings.Contains(said, "\n"+where+"\n") {
				d.Errorf("%s: %+v", how, r)
			}
		}
		check.Slices(d, "the files after a refused removal", d.files(), before)
		check.Equal(d, "after a refused removal it is", d.want("dpkg-query -W -f '${db:Status-Status}' adlock"), "installed")
	}
	d.want("crontab /root/kept && rm " + where)
}

// new lists the files that were not there before.
func (d *debian) new(before []string) []string {
	d.Helper()
	return slices.DeleteFunc(d.files(), func(path string) bool { return slices.Contains(before, path) })
}

func TestTheAnsibleRoleSetsUpADebianAndThenChangesNothing(t *testing.T) {
	t.Parallel()
	released(t)
	d := newDebian(t, "ansible-core", "python3-apt")
	d.bring("release/*_amd64.deb", "adlock.deb")
	for _, example := range []string{"ansible", "park/setup"} {
		want(t, "cp", "-r", filepath.Join(helper.Root(), "test/examples", example), filepath.Join(d.root, "root"))
	}
	d.want(`mount -t tmpfs tmpfs /dev/shm && mkdir -p /var/lib/prometheus/node-exporter /etc/prometheus/rules
printf 'SHELL=/bin/bash\n*/5 * * * *  root  : feeds ; /bin/true\n' >/etc/cron.d/site`)
	const play = "cd /root/ansible && LC_ALL=C.UTF-8 ansible-playbook -c local -i localhost, -e adlock_deb=/root/adlock.deb site.yml"
	changed := regexp.MustCompile(`ok=\d+ +changed=(\d+) .* failed=0 `)
	for n, want := range []string{"6", "0"} {
		if out := d.want(play); len(changed.FindStringSubmatch(out)) != 2 || changed.FindStringSubmatch(out)[1] != want {
			t.Errorf("play %d: not %s changes:\n%s", n+1, want, out)
		}
	}
	// The script brings a machine to the same state, so it finds nothing to change.
	check.Equal(t, "the script said", d.want("sh /root/setup"), "")
	if out := d.want("adlock config"); !regexp.MustCompile(`ADLOCK_SYSLOG +1 +/etc/adlock.conf`).MatchString(out) {
		t.Error(out)
	}
	d.want("sh -c \"$(sed 's/.*root  //' /etc/cron.d/adlock-metrics)\"")
	if out := d.want("cat /etc/cron.d/site /var/lib/prometheus/node-exporter/adlock.prom"); !strings.HasPrefix(out, "SHELL=/usr/lib/adlock/shell\nADLOCK_SHELL=/bin/bash\n") || !strings.Contains(out, "adlock_counted_until_timestamp_seconds ") {
		t.Error(out)
	}
}

// removal does what apk does at a removal, in mounts of its own: it runs .pre-deinstall, removes
// the package's files whatever the script's status is (apk_db_install_pkg ignores it), and runs
// .post-deinstall. Words behind the first are lines of a crontab.
const removal = `
set -eu
package=$1
shift
mount --make-rprivate /
mount -t tmpfs none /mnt
mkdir /mnt/new /mnt/work /mnt/cron.d
mount -t overlay none -o lowerdir=/usr/lib,upperdir=/mnt/new,workdir=/mnt/work /usr/lib
mount --bind /mnt/cron.d /etc/cron.d
mkdir -p /usr/lib/adlock
cp "$package"/usr/lib/adlock/* /usr/lib/adlock
printf '%s\n' "$@" >/etc/cron.d/site
"$package/.pre-deinstall" 0.2.0-r1 || :
for file in "$package"/usr/lib/adlock/*; do
	rm "/usr/lib/adlock/${file##*/}"
done
rmdir /usr/lib/adlock 2>/dev/null || :
"$package/.post-deinstall" 0.2.0-r1
[ -e /usr/lib/adlock ] || { echo gone; exit; }
ls /usr/lib/adlock
printf 'a b\n' | /usr/lib/adlock/shell -c ': n ADLOCK_WAIT=5m ; read -r x; echo "$x $0 $SHELL"; exit 3' || echo $?
ADLOCK_SHELL=/bin/bash /usr/lib/adlock/shell -c 'echo "$BASH $SHELL ${ADLOCK_SHELL-none}"'
`

func removed(t *testing.T, lines ...string) helper.Result {
	t.Helper()
	need.Root(t)
	need.Tools(t, "tar", "bash")
	need.Namespaces(t, "--mount")
	apk := unpacked(t, "*_x86_64.apk", `tar -xzf "$1"`)
	return helper.Command{Args: append([]string{"unshare", "--mount", "sh", "-c", removal, "sh", apk}, lines...)}.Run(t)
}

// A package's script cannot stop apk from removing the package.
func TestACrontabRunsUnlockedOnceTheApkIsRemoved(t *testing.T) {
	t.Parallel()
	released(t)
	r := removed(t, "SHELL=/usr/lib/adlock/shell", "* * * * * root job")
	r.Is(t, 0, "shell\na b /bin/sh /bin/sh\n3\n/bin/bash /bin/bash none\n", "…")
	if !strings.Contains(r.Err, "\n/etc/cron.d/site\n") || strings.Count(r.Err, "nothing is locked") != 3 {
		t.Errorf("it says %s", r.Err)
	}
	if r := removed(t, "* * * * * root /usr/bin/adlock run --name n -- job"); r.Status != 0 || r.Out != "gone\n" || !strings.Contains(r.Err, "adlock: /usr/bin/adlock: runs lines of these crontabs") {
		t.Errorf("with a line that calls adlock run: %+v", r)
	}
	if r := removed(t, "SHELL=/bin/sh", "* * * * * root job"); r.Status != 0 || r.Out != "gone\n" || strings.Contains(r.Err, "locked") {
		t.Errorf("without a guarded crontab: %+v", r)
	}
}
