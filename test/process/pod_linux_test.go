package process

import (
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// pod makes, in mounts of its own, what a user with a random id finds in a pod of OpenShift, and runs the script
// there: a home of 1001:0, an emptyDir, a volume of root and a group, /dev/shm. $pod begins a command of that user.
func pod(t *testing.T, script string) helper.Result {
	t.Helper()
	need.Root(t)
	need.Tools(t, "setpriv", "install")
	need.Namespaces(t, "--mount")
	return helper.Command{Args: []string{"unshare", "--mount", "sh", "-euc", `
		mount -t tmpfs -o mode=755 pod "$world" && cd "$world"
		mkdir home vol pvc locks
		chown 1001:0 home; chmod 775 home; chmod 777 vol; chgrp 12345 pvc; chmod 2775 pvc
		mount -t tmpfs -o mode=1777 shm /dev/shm
		pod="setpriv --reuid=1000680000 --regid=0 --groups=0,12345 --inh-caps=-all env HOME=/"
		` + script}, Env: []string{"world=" + public(t), "adlock=" + program(t, 0o755)}}.Run(t)
}

func TestTheErrorInAPodNamesAUsableLockDirectory(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"HOME=$world/home", "ADLOCK_DIR=$world/vol/locks", "ADLOCK_DIR=$world/vol", "ADLOCK_DIR=$world/pvc/locks", "HOME=/", "HOME="} {
		r := pod(t, `
			said=$($pod `+where+` $adlock run --name x -- true 2>&1) && exit 1
			echo "$said"
			place=${said##*in a pod: }
			$pod "${place%%,*}" $adlock run --name x -- echo ran`)
		lines := strings.Split(r.Out, "\n")
		if r.Status != 0 || len(lines) != 3 || lines[1] != "ran" || strings.Contains(lines[0], "chmod") {
			t.Errorf("%s: %+v", where, r)
		}
	}
}

// The directory of a volume, as CONTAINERS in adlock(7) has it; a later pod opens it to the group.
func TestALockDirectoryOnAPodsVolumeKeepsLastLocks(t *testing.T) {
	t.Parallel()
	r := pod(t, `
		for start in first second; do
			$pod install -d -m 700 pvc/locks
			mount --bind pvc/locks locks
			$pod ADLOCK_DIR=$world/locks $adlock run --name x --if-elapsed 1h -E 9 -- echo $start || echo $?
			umount locks
			chmod -R g+rw pvc; chmod g+x pvc/locks
		done`)
	r.Is(t, 0, "first\n9\n", "")
}
