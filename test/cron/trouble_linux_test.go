package cron

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// crowded is a crontab whose lock directory is on a disk that is full until the second job makes room. The
// runlog is on another disk.
const crowded = `ADLOCK_DIR={dir}/full
ADLOCK_LOGDIR={dir}/locks
ADLOCK_HOST=dax
* * * * * {dir}/adlock run --name backup -- echo the backup has run
* * * * * {dir}/adlock run --name clean -- {dir}/clean || case $? in 73|74|77) {dir}/clean ;; esac
`

const clean = `#!/bin/sh
echo cleaned
rm -f {dir}/full/fill
`

// homeless is a system crontab for a user whose home is root's, as /var/www is; root makes the
// user's lock directory during the test.
const homeless = `ADLOCK_HOST=dax
HOME={dir}/home
* * * * * www-data {dir}/adlock run --name web -- echo the web job has run
* * * * * root test ! -e {dir}/init || {dir}/adlock init www-data
`

// troubled is a world in which the lock directory of crowded is full, and /var/lib empty.
func troubled(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.quick()
	for _, dir := range []string{"full", "locks"} {
		must.Do(t, os.Mkdir(w.path(dir), 0o700))
	}
	w.daemon = append([]string{"sh", "-c", `mount -t tmpfs -o mode=755 none /var/lib && mount -t tmpfs -o size=64k,mode=700 none "$0" || exit
cat /dev/zero >"$0/fill" 2>/dev/null
exec "$@"`, w.path("full")}, w.daemon...)
	return w
}

func (w *world) mailed(text string) bool {
	w.Helper()
	return strings.Contains(w.read("mail"), "\n"+strings.ReplaceAll(text, "{dir}", w.dir)+"\n")
}

func TestAFullDiskIsReportedByMailAndTheCleaningJobRuns(t *testing.T) {
	t.Parallel()
	w := troubled(t)
	w.write("clean", clean, 0o755)
	w.start(crowded, "")
	w.await("the job that makes room is not run with a lock", func() bool {
		return count(w.events("clean"), runlog.NotRun) == 1
	})
	w.await("what is started next runs with a lock", func() bool {
		return count(w.events("backup"), runlog.Release) > 0 && count(w.events("clean"), runlog.Release) > 0
	})
	w.await("all is mailed", func() bool {
		return w.mailed("adlock: run clean: not run: {dir}/full: no space left on device\ncleaned") && w.mailed("the backup has run")
	})
	// cron may have started the two jobs in either order.
	if n := count(w.events("backup"), runlog.NotRun); n > 0 && !w.mailed("adlock: run backup: not run: {dir}/full: no space left on device") {
		t.Errorf("not run %d times, and mailed is\n%s", n, w.read("mail"))
	}
}

func TestMailToAUserWithoutALockDirectoryNamesTheRemedy(t *testing.T) {
	t.Parallel()
	w := troubled(t)
	if _, err := user.Lookup("www-data"); err != nil {
		need.Skip(t, err)
	}
	must.Do(t, errors.Join(os.Mkdir(w.path("home"), 0o755), os.Chmod(w.path("mail"), 0o666))) // cron mails as the user
	w.copy(filepath.Join(filepath.Dir(helper.Binary(t)), "adlock-report"), "adlock-report")
	for dir := w.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // www-data must reach it
		must.Do(t, os.Chmod(dir, 0o755))
	}
	w.start("", homeless)
	w.await("the mail says what to do", func() bool {
		return w.mailed("adlock: run web: not run: {dir}/home/.local/state/adlock: mkdir: permission denied (as root: adlock init www-data)")
	})
	w.write("init", "", 0o644)
	w.await("after that the job runs", func() bool { return w.mailed("the web job has run") })
}

// batches has two jobs without a limit. Each has five short runs, and then one that lasts until the test ends
// it. The second is overdue after six seconds, so that a later start reports it while it runs.
const batches = `SHELL={dir}/shell
ADLOCK_DIR={dir}/locks
ADLOCK_HOST=dax
MAILTO=admin
* * * * * : batch ; {dir}/batch batch
* * * * * : nightly ADLOCK_NOTICE=6s ; {dir}/batch nightly
`

const batch = `#!/bin/sh
echo run >>{dir}/runs-$1
[ "$(wc -l <{dir}/runs-$1)" -gt 5 ] || exit 0
until [ -e {dir}/go ]; do sleep 0.1; done
echo "$1 is done"
`

func TestALongRunIsReportedByMailAndNotEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shell()
	w.quick()
	w.write("batch", batch, 0o755)
	w.start(batches, "")
	w.await("the sixth run of each lasts, and starts are denied", func() bool {
		return count(w.events("batch"), runlog.Deny) > 1 && count(w.events("nightly"), runlog.Overdue) == 1
	})
	denied := count(w.events("nightly"), runlog.Deny)
	w.await("two more starts are denied", func() bool { return count(w.events("nightly"), runlog.Deny) > denied+1 })
	w.write("go", "", 0o600)
	w.awaitMail(`(?m)^adlock: run nightly: overdue: process [0-9]+ has run for [0-9]+s, its notice is 6s; to end it: adlock stop '[^']+/lock\.adlock\.dax\.run\.nightly'; `)
	w.awaitMail(`(?m)^batch is done$`)
	check.Equal(t, "mails that tell of it", strings.Count(w.read("mail"), " overdue: "), 1)
	for _, job := range []string{"batch", "nightly"} {
		if events := w.events(job); count(events, runlog.Expire)+count(events, runlog.Signal) > 0 {
			t.Errorf("%s was ended: %s", job, w.story(job))
		}
	}
}

func (w *world) awaitMail(pattern string) {
	w.Helper()
	wanted := regexp.MustCompile(pattern)
	w.await("there is mail like "+pattern, func() bool { return wanted.MatchString(w.read("mail")) })
}
