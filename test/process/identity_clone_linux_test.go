package process

import (
	"os/exec"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

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
