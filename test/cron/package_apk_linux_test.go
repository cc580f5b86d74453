//go:build soak

package cron

import (
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

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
