package cron

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// container runs a shell script as process 1 of a container, which has pids, mounts and a node name of its
// own, and the locks on a volume.
func container(p *place, name, script string, more ...string) helper.Command {
	p.Helper()
	need.Root(p)
	need.Namespaces(p, "--pid", "--fork", "--mount-proc", "--uts")
	words := append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts",
		"sh", "-c", `echo ` + name + ` >/proc/sys/kernel/hostname; [ $$ = 1 ] || exit 99; ` + script}, more...)
	return p.line(words...)
}

// holding starts a container whose job holds the atom `site` until the file go exists.
func holding(p *place, name string, more ...string) *helper.Process {
	p.Helper()
	script := strings.ReplaceAll(`adlock run --name site --expire-after never --pause 1s -- sh -c ': >{dir}/`+name+`-runs; `+await+`await go' & wait; [ ! -e {dir}/stays ] || { `+await+`await left; }`, "{dir}", p.dir)
	c := container(p, name, script, more...).Start(p)
	p.there(name + "-runs")
	helper.Eventually(p, "no process is at its locks", func() bool {
		return !slices.ContainsFunc(p.locks(), func(lock string) bool { return !helper.Settled(lock) })
	})
	return c
}

const another = "adlock run --name site "

func TestContainersThatShareAHostNameExcludeEachOther(t *testing.T) {
	p := newPlace(t)
	one := holding(p, "one")
	container(p, "two", another+"echo ran").Run(t).Denied(t)
	container(p, "two", another+"echo ran", "ADLOCK_HOST=").Run(t).Ran(t)
	waiting := container(p, "two", another+"--wait 1h echo ran").Start(t)
	helper.Eventually(t, "the other waits", func() bool { return len(p.events(runlog.Wait)) == 1 })
	p.write("go", "", 0o644)
	one.Is(p, 0, "…")
	waiting.Is(p, 0, "…")
	container(p, "two", another+"--if-elapsed 1h echo ran").Run(t).Denied(t)
}

func TestAContainerEndsAJobOfAnotherInItsPidNamespace(t *testing.T) {
	need.Tools(t, "nsenter")
	p := newPlace(t)
	p.write("stays", "", 0o644) // process 1 stays: its end would kill all others
	one := holding(p, "one")
	inside := helper.Children(one.PID)
	if len(inside) != 1 {
		t.Fatalf("process 1 is one of %v", inside)
	}
	r := p.line("nsenter", "--pid", "--mount", "--target", strconv.Itoa(inside[0]), "unshare", "--uts",
		"sh", "-c", another+"--expire-after 0 echo ran").Run(t)
	r.Is(t, 0, "…", "…by force…")
	p.write("left", "", 0o644)
	one.Is(p, 0, "…")
}

// root builds the container's root directory in $1 from this machine's /usr, as the Containerfile
// does from Debian's image, and becomes process 1 of the container.
const root = `
set -e
cd "$1"
mount -t tmpfs tmpfs image
mkdir image/usr image/upper image/work
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$PWD/image/upper,workdir=$PWD/image/work" image/usr
for dir in bin sbin lib lib64 dev; do
	[ -e /$dir ] || continue
	if [ -L /$dir ]; then cp -P /$dir image/$dir; else mkdir image/$dir; mount --rbind /$dir image/$dir; fi
done
mkdir -m 1777 image/tmp
mkdir -p image/proc image/run image/etc/cron.d image/usr/local/bin image/var/lib/adlock image/var/spool/cron/crontabs image/root image/volume
ln -s ../run image/var/run
for file in passwd group shadow nsswitch.conf pam.d pam.conf security login.defs environment ld.so.cache localtime default; do
	[ ! -e /etc/$file ] || cp -a /etc/$file image/etc/
done
: >image/etc/machine-id
mount --bind locks image/var/lib/adlock
mount --bind . image/volume
mount -t proc proc image/proc
cp bin/adlock image/usr/bin/
cp bin/entrypoint bin/warm-cache image/usr/local/bin/
cp crontab image/etc/cron.d/site
echo "$2" >/proc/sys/kernel/hostname
unset ADLOCK_DIR ADLOCK_HOST # the test's own
exec chroot image /usr/local/bin/entrypoint`

// cronContainer starts the example's container, with its crontab and entrypoint.
func cronContainer(p *place, name string, more ...string) *helper.Process {
	p.Helper()
	return p.line(append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount", "--uts", "sh", "-c", root, "sh", p.dir, name}, more...)...).Start(p)
}

// stop signals process 1, as `podman stop` does first.
func stop(p *place, container *helper.Process) {
	p.Helper()
	inside := helper.Children(container.PID)
	if len(inside) != 1 {
		p.Fatalf("process 1 is one of %v: %s", inside, container.Output())
	}
	must.Do(p.T, syscall.Kill(inside[0], syscall.SIGTERM))
}

func cronPlace(t *testing.T) *place {
	t.Helper()
	need.Root(t)
	need.Tools(t, "cron")
	p := newPlace(t)
	p.example("containers/entrypoint", "bin/entrypoint")
	p.example("containers/crontab", "crontab", "*/5 * * * *", "0 0 30 2 *") // never: the test may last over such a minute
	must.Do(t, os.Chmod(p.path("crontab"), 0o644))
	p.command("warm-cache", `echo run:$(cat /proc/sys/kernel/hostname) >>/volume/notes; sleep 1000`)
	must.Do(t, os.Mkdir(p.path("image"), 0o755))
	must.Do(t, os.Mkdir(p.path("locks"), 0o700))
	p.copied("adlock")
	p.needsImage()
	return p
}

func TestAStoppedContainerWithCronReleasesItsLocks(t *testing.T) {
	p := cronPlace(t)
	one := cronContainer(p, "one")
	helper.Eventually(t, "the job runs", func() bool { return len(p.notes()) == 1 })
	two := cronContainer(p, "two")
	helper.Eventually(t, "the other container's job is denied", func() bool { return len(p.denials()) == 1 })
	stop(p, two)
	two.Is(p, 0, "…")
	stop(p, one)
	one.Is(p, 0, "…")
	check.Equal(t, "locks left", len(p.locks()), 0)
	check.Equal(t, "said", one.Output()+two.Output(), "")
	p.wantNotes("run:one")
}

func TestAContainerClearsItsOldLocksOnlyIfAskedTo(t *testing.T) {
	for pattern, run := range map[string]string{"lock.*": "run --name", "read.*.*.*.*.*": "run --shared --name"} {
		t.Run(run, func(t *testing.T) {
			p := cronPlace(t)
			p.write("crontab", strings.ReplaceAll(p.read("crontab"), "run --name", run), 0o644)
			one := cronContainer(p, "one")
			helper.Eventually(t, "the job runs", func() bool { return len(p.notes()) == 1 })
			one.Kill(t)
			left, _ := filepath.Glob(p.path("locks/" + pattern))
			check.Equal(t, "locks left", len(left), 1)
			p.write("crontab", strings.ReplaceAll(p.read("crontab"), run, "run --name"), 0o644)
			again := cronContainer(p, "one")
			helper.Eventually(t, "the job is denied", func() bool { return len(p.denials()) == 1 })
			again.Kill(t)
			once := cronContainer(p, "one", "ADLOCK_CLEAR=1")
			helper.Eventually(t, "the job runs again", func() bool { return len(p.notes()) == 2 })
			stop(p, once)
			once.Is(p, 0, "…")
			p.wantNotes("run:one run:one")
		})
	}
}

func TestTheEntrypointRefusesToRunUnlessItIsProcess1(t *testing.T) {
	p := newPlace(t)
	// If the entrypoint went on, it would end only processes in a pid namespace of this test.
	r := container(p, "one", p.example("containers/entrypoint", "bin/entrypoint")+"; exit $?").Run(t)
	r.Refused(t, 64, "process 1 of a container")
}

// denials are the denials of the example's jobs.
func (p *place) denials() []runlog.Event { return p.eventsOf("site", runlog.Deny) }

func (p *place) locks() []string {
	p.Helper()
	left, err := filepath.Glob(p.path("locks/lock.*"))
	must.Do(p.T, err)
	return left
}

// copied copies the helper program into bin, for a container's root that has no other.
func (p *place) copied(name string) {
	p.Helper()
	must.Do(p.T, exec.Command("cp", helper.Binary(p), p.path("bin/"+name)).Run())
}

// needsImage skips the test if the root of a container cannot be made.
func (p *place) needsImage() {
	p.Helper()
	try := strings.Replace(root, "exec chroot image /usr/local/bin/entrypoint", "exec chroot image /bin/true", 1)
	r := p.line("unshare", "--pid", "--fork", "--kill-child", "--mount", "--uts", "sh", "-c", try, "sh", p.dir, "trial").Run(p)
	if r.Status != 0 {
		need.Skip(p, "no root of a container to be had:", r.Err)
	}
}
