package cron

import (
	"regexp"
	"strings"
	"testing"

	"adlock/lib/runlog"
)

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
	if told := strings.Count(w.read("mail"), " overdue: "); told != 1 {
		t.Errorf("%d mails tell of it", told)
	}
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
