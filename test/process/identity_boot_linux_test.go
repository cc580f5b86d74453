package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// bootless runs a command with a /proc without a boot id: mounted with subset=pid, as by
// ProcSubset=pid of systemd.exec(5). The machine has an id there.
var bootless = []string{"unshare", "--mount", "sh", "-c",
	`mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work &&
		mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work none /etc &&
		echo 0123456789abcdef0123456789abcdef >/etc/machine-id || exit
	mount -t proc -o subset=pid proc /proc && exec "$@"`, "sh"}

// placeless is bootless without a machine id.
var placeless = append(nameless[:len(nameless):len(nameless)], "unshare", "--mount", "sh", "-c", `mount -t proc -o subset=pid proc /proc && exec "$@"`, "sh")

func needBootless(t *testing.T, prefix []string) {
	t.Helper()
	needNamespaces(t)
	c := append(prefix[:len(prefix):len(prefix)], "true")
	if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
		need.Skip(t, "no such mounts to be had: ", string(out))
	}
}

func TestAnEndedCommandFreesItsAtomWithoutABootID(t *testing.T) {
	t.Parallel()
	for claim, prefix := range map[string][]string{"with a machine id": bootless, "with neither": placeless} {
		t.Run(claim, func(t *testing.T) {
			needBootless(t, prefix)
			a := helper.NewAtom(t)
			a.Shell(t, "$run echo ran", prefix...).Ran(t)
			got := a.Shell(t, "$run --enforce --expire-after 10ms sleep 1000", prefix...)
			got.Is(t, fault.StatusExpired, "…", "…")
			a.Shell(t, "$take && $adlock release "+a.Lock(), prefix...).Refused(t, 77, "give its token")
			a.Shell(t, "$adlock clear "+helper.AtomName+"; $take && $adlock release --token $(sed -n s/^token=//p "+a.Lock()+") "+a.Lock(), prefix...).
				Is(t, 0, "…", "…")
			a.Shell(t, "$run echo ran", prefix...).Ran(t)
			a.Shell(t, "$adlock pause --for 1h "+helper.AtomName+" && $run echo ran", prefix...).Denied(t)
		})
	}
}

// A process that has the recorded pid in this boot may not be the owner.
func TestOnlyADeadOwnerIsReplacedWithoutABootID(t *testing.T) {
	t.Parallel()
	needBootless(t, bootless)
	a := helper.NewAtom(t)
	owner := a.Owner(t, "exec sleep 1000", bootless...)
	newcomer := func(options string) helper.Result { return a.Shell(t, "$run "+options+" echo ran", bootless...) }
	newcomer("").Denied(t)
	newcomer("--expire-after=0").Refused(t, 77, "there is no boot id")
	owner.Lives(t)
	owner.Kill(t)
	newcomer("").Ran(t)
}

func TestADeadOwnersLockIsStuckWithoutBootAndMachineID(t *testing.T) {
	t.Parallel()
	needBootless(t, placeless)
	a := helper.NewAtom(t)
	a.Owner(t, "exec sleep 1000", placeless...).Kill(t)
	mustBeStuckUntilCleared(t, a, "neither a boot id", placeless...)
}

func TestAnUnreadableIdentityFileIsReportedAsAnError(t *testing.T) {
	t.Parallel()
	need.Tools(t, "strace")
	for _, path := range []string{"/proc/sys/kernel/random/boot_id", "/etc/machine-id", "/proc/self/ns/pid", "/proc/self/ns/time"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		for _, c := range []struct {
			err, words string
			status     int
		}{
			{"EMFILE", "too many open files", fault.StatusSystem},
			{"ENFILE", "too many open files in system", fault.StatusSystem},
			{"ENOMEM", "cannot allocate memory", fault.StatusSystem},
			{"EIO", "input/output error", fault.StatusIO},
		} {
			call := "openat"
			if strings.Contains(path, "/ns/") {
				call = "/^(newf|f)statat(64)?$"
			}
			a := helper.NewAtom(t)
			traced := func(line string) helper.Result {
				return a.Shell(t, fmt.Sprintf("exec strace -f -qq -o /dev/null -P %s -e trace='%s' -e inject='%s':error=%s %s", path, call, call, c.err, line))
			}
			for _, line := range []string{"$run echo ran", "$adlock take --owner $$ -- " + a.Lock() + " p dax o x", "$adlock clear " + helper.AtomName} {
				clears := strings.Contains(line, "clear")
				if clears {
					a.Owner(t, "exec sleep 1000")
				}
				want := "adlock: " + path + ": " + c.words + "\n"
				if strings.HasPrefix(line, "$run ") {
					want = strings.Replace(want, "adlock: ", "adlock: o x: not run: ", 1)
				}
				traced(line).Is(t, c.status, "", want)
				if _, err := os.Stat(a.Lock()); os.IsNotExist(err) == clears {
					t.Errorf("%s of %s: %s: the lock: %v", c.err, path, line, err)
				}
			}
		}
	}
}

// Each of these runs a command with a lock directory of a kind, and may change the node name there.
// What an overlay has below it may be shared with other machines.
var (
	onLocal  = []string{"unshare", "--mount", "--uts", "sh", "-c", `mount -t tmpfs -o mode=700 none "$ADLOCK_DIR" && exec "$@"`, "sh"}
	onShared = []string{"unshare", "--mount", "--uts", "sh", "-c", `mount -t tmpfs none /mnt && mkdir -m 700 /mnt/lower /mnt/upper /mnt/work &&
		mount -t overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work none "$ADLOCK_DIR" && exec "$@"`, "sh"}
)

func needMounts(t *testing.T, a *helper.Atom, prefix []string) {
	t.Helper()
	need.Root(t)
	need.MachineID(t)
	need.Tools(t, "hostname")
	need.Namespaces(t, "--mount", "--uts")
	c := exec.Command(prefix[0], append(prefix[1:len(prefix):len(prefix)], "true")...)
	c.Env = append(c.Environ(), a.Env()...)
	if out, err := c.CombinedOutput(); err != nil {
		need.Skip(t, "no such mounts to be had: ", string(out))
	}
}

// ownerOfAnotherBoot leaves the lock of an owner that the node one made in another boot.
const ownerOfAnotherBoot = `hostname one; lock=$ADLOCK_DIR/lock.p.dax.o.x
sh -c '$take' && text=$(sed 's/^boot=.*/boot=00000000-0000-0000-0000-000000000000/' "$lock") && echo "$text" >"$lock" || exit 99
`

// Cloned machines have one machine id, so the owner may live on a clone.
func TestARenamedHostReclaimsAnEarlierLockOnALocalDiskOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim, node string
		prefix      []string
		takes       bool
	}{
		{"local, renamed since", "two", onLocal, true},
		{"shared, of the same name", "one", onShared, true},
		{"shared, of another name", "two", onShared, false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			a := helper.NewAtom(t)
			needMounts(t, a, c.prefix)
			got := a.Shell(t, ownerOfAnotherBoot+"hostname "+c.node+"; $run echo ran", c.prefix...)
			if c.takes {
				got.Ran(t)
			} else {
				got.Denied(t)
			}
		})
	}
}

func TestDoctorWarnsOfAnotherBootsLockOnASharedDiskOnly(t *testing.T) {
	t.Parallel()
	const warning = "warn machine id: lock.p.dax.o.x is of another boot of a machine with this id, named one: "
	for want, prefix := range map[string][]string{"0\n": onLocal, "1\n": onShared} {
		a := helper.NewAtom(t)
		needMounts(t, a, prefix)
		script := ownerOfAnotherBoot + "hostname two; $adlock doctor | grep -c '^" + warning + "' || :"
		a.Shell(t, script, prefix...).Is(t, 0, want, "…")
	}
}
