package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func TestTheDoctorPrintsALinePerFindingAndLeavesNoFile(t *testing.T) {
	p := newPlace(t)
	text := p.ok(t, "doctor")
	has(t, text, " lock directory: "+p.dir, "ok   flock: ", "ok   runlog: ", "adlock.sh")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "ok   ") && !strings.HasPrefix(line, "warn ") {
			t.Errorf("a line of no grade: %q", line)
		}
	}
	if left, err := os.ReadDir(p.dir); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// sick expects status 1, and each wanted text in the output.
func sick(t *testing.T, c helper.Command, wanted ...string) {
	t.Helper()
	r := c.Run(t)
	r.Is(t, 1, "…", "")
	has(t, r.Out, wanted...)
}

func TestTheDoctorExitsWith1IfACheckFails(t *testing.T) {
	p := newPlace(t)
	must(t, os.Chmod(p.dir, 0o720))
	sick(t, p.command("doctor"), "fail lock directory: "+p.dir, "chmod go-w")
	p.command("doctor", "thing").Run(t).Is(t, 64, "", "…")
	has(t, p.ok(t, "doctor", "--help"), "usage: ", "doctor", "fit to keep locks")
}

func TestTheDoctorReportsAUlimitThatIsTooLow(t *testing.T) {
	p := newPlace(t)
	for _, limit := range []string{"ulimit -n 12", "ulimit -v 779999"} {
		c := p.command()
		c.Args = []string{"sh", "-c", limit + `; exec "$0" doctor`, filepath.Join(filepath.Dir(p.program), "adlock-report")}
		sick(t, c, "fail ulimits: "+limit)
	}
}

// within returns a command that runs the script mounts as root, in a mount namespace of its own ($0: adlock).
func within(t *testing.T, p place, mounts string) helper.Command {
	t.Helper()
	need.Root(t)
	need.Tools(t, "setpriv")
	need.Namespaces(t, "--mount")
	c := p.command()
	c.Args = []string{"unshare", "--mount", "sh", "-c", mounts, p.program}
	return c
}

// nobodys makes a directory that every user may enter, with adlock in it; asNobody runs the doctor there.
const (
	ownEtc   = `mount -t tmpfs none /mnt && cp -a /etc /mnt && mount --bind /mnt/etc /etc && `
	nobodys  = `mount -t tmpfs -o mode=755 none /mnt && cp "$0" "${0%/*}"/adlock-* /mnt && mkdir /mnt/l && export ADLOCK_DIR=/mnt/l`
	asNobody = `setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/adlock doctor`
)

func TestTheDoctorReportsHidepidAndAMissingProc(t *testing.T) {
	p := newPlace(t)
	for _, hidepid := range []string{"1", "2"} {
		c := within(t, p, nobodys+` && chown 65534 /mnt/l && mount -t proc -o hidepid=`+hidepid+` proc /proc && exec `+asNobody)
		c.Run(t).Is(t, 0, "…warn /proc: hides other users' processes (hidepid); …", "…")
	}
	sick(t, within(t, p, `PATH=${0%/*}:$PATH; umount -l /proc && exec adlock doctor`), "fail processes: /proc: is not mounted; mount it")
}

func TestTheDoctorReportsAMissingBootOrMachineID(t *testing.T) {
	p := newPlace(t)
	const subset = `mount -t proc -o subset=pid proc /proc`
	if r := within(t, p, subset).Run(t); r.Status != 0 {
		need.Skip(t, "this kernel has no subset=pid: ", r.Err)
	}
	const nameless = `for id in /etc/machine-id /var/lib/dbus/machine-id; do [ ! -e $id ] || mount --bind /dev/null $id || exit; done; `
	for setUp, words := range map[string][]string{
		nameless:          {"warn machine id: there is none; ", "ok   boot id: "},
		nameless + subset: {"warn machine id: there is none; ", "warn boot id: /proc/sys/kernel/random/boot_id is not shown, and there is no machine id; leave out ProcSubset=pid"},
	} {
		r := within(t, p, setUp+"\n"+`exec "$0" doctor`).Run(t)
		r.Is(t, 0, "…", "…")
		for _, word := range words {
			has(t, r.Out, word)
		}
	}
	need.MachineID(t)
	has(t, within(t, p, subset+` && exec "$0" doctor`).Run(t).Out, "warn boot id: /proc/sys/kernel/random/boot_id is not shown; leave out ProcSubset=pid")
}

func TestTheDoctorWarnsOfAMissingSyslogOnlyIfItIsConfigured(t *testing.T) {
	p := newPlace(t)
	const none = `mount -t tmpfs none /dev && : >/dev/null && exec "$0" doctor`
	c := within(t, p, none)
	has(t, c.Run(t).Out, "ok   syslog: /dev/log: no such file or directory (only ADLOCK_SYSLOG needs it)\n")
	const warning = "warn syslog: /dev/log: no such file or directory: ADLOCK_SYSLOG is set and does nothing; start a syslogd or journald\n"
	has(t, within(t, p, ownEtc+`echo ADLOCK_SYSLOG=1 >/etc/adlock.conf && `+none).Run(t).Out, warning)
	has(t, within(t, p, ownEtc+`echo ADLOCK_SYSLOG=x >/etc/adlock.conf && `+none).Run(t).Out, "/etc/adlock.conf:1: ADLOCK_SYSLOG: ")
	c.Env = append(c.Env, "ADLOCK_SYSLOG=1")
	has(t, c.Run(t).Out, warning)
}

func TestTheDoctorReportsAFullOrReadOnlyFileSystem(t *testing.T) {
	p := newPlace(t)
	sick(t, within(t, p, `mount -t tmpfs -o mode=700,size=1m,nr_inodes=4 none "$ADLOCK_DIR" && cd "$ADLOCK_DIR" && : >a && : >b && : >c && exec "$0" doctor`),
		"fail free space: ", "fail files: ")
	has(t, within(t, p, `mount -t tmpfs -o mode=700,size=30m none "$ADLOCK_DIR" && ADLOCK_LOG_MAX=20000000 exec "$0" doctor`).Run(t).Out, "warn free space: ")
	has(t, within(t, p, `mount -t tmpfs -o mode=700,size=1m none /mnt && ADLOCK_LOGDIR=/mnt exec "$0" doctor`).Run(t).Out, "warn free space: ", "ADLOCK_LOGDIR")
	has(t, within(t, p, `mount -t tmpfs -o mode=700,size=0 none "$ADLOCK_DIR" && exec "$0" doctor`).Run(t).Out, "ok   free space: without a limit\n")
	sick(t, within(t, p, `mount -t tmpfs -o mode=700,ro none "$ADLOCK_DIR" && exec "$0" doctor`), "fail files: ", "read-only")
}

func TestAUserWithoutALockDirectoryIsReferredToInit(t *testing.T) {
	p := newPlace(t)
	const home = nobodys + ` && unset ADLOCK_DIR && export HOME=/mnt/home && exec setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/adlock `
	sick(t, within(t, p, home+`doctor`), "fail lock directory: /mnt/home/.local/state/adlock: write to /mnt: permission denied (as root: adlock init nobody)\n")
	p.checked(t, within(t, p, home+`run --name n -- true`), 73, "", "adlock: run n: not run: /mnt/home/.local/state/adlock: mkdir: permission denied (as root: adlock init nobody)\n")
	p.checked(t, within(t, p, home+`run --store /mnt/locks --name n -- true`), 73, "", "adlock: run n: not run: /mnt/locks: mkdir: permission denied (name one of your own: ADLOCK_DIR)\n")
}

func TestTheDoctorReportsAHOMEThatMovesTheLockDirectory(t *testing.T) {
	t.Parallel()
	r := onHost(t, `as one mkdir /mnt/one/b; for h in one one/b; do as one env HOME=/mnt/$h $a doctor | grep home:; done`)
	if !strings.HasPrefix(r.Out, "warn home: HOME is not that of passwd(5), with which the lock directory is /mnt/one/.local/state/adlock: ") || strings.Count(r.Out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestTheDoctorReportsLocksOfAMachineWithAnotherID(t *testing.T) {
	t.Parallel()
	if process.Here().Machine == "" {
		need.Skip(t, "this machine has no id")
	}
	r := onHost(t, `$a run --name x -- sh -c "$a doctor; sed -i s/^machine=.*/machine=0123456789abcdef0123456789abcdef/ /var/lib/adlock/lock.*; $a doctor" | grep "machine with another id"`)
	if !strings.HasPrefix(r.Out, "warn machine id: lock.adlock.dax.run.x: of a machine with another id") || strings.Count(r.Out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}
