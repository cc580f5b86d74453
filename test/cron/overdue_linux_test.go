package cron

import (
	"regexp"
	"strings"
	"testing"

	"adlock/lib/limit"
	"adlock/lib/runlog"
)

// batches has three jobs without a fixed limit. The first two have five short runs, and then one
// that lasts until the test ends it. The second is overdue after six seconds, so that a later
// start reports it while it runs. The third learns a limit.
const batches = `SHELL={world}/shell
ADLOCK_DIR={world}/locks
ADLOCK_HOST=dax
MAILTO=admin
* * * * * : batch ; {world}/batch batch
* * * * * : nightly ADLOCK_NOTICE=6s ; {world}/batch nightly
* * * * * : learner ADLOCK_EXPIRE_AFTER=auto ; true
`

const batch = `#!/bin/sh
echo run >>{world}/runs-$1
[ "$(wc -l <{world}/runs-$1)" -gt 5 ] || exit 0
until [ -e {world}/go ]; do sleep 0.1; done
echo "$1 is done"
`

func TestALongRunIsNotEndedButMailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shell(t)
	w.quick(t)
	w.write(t, "batch", batch, 0o755)
	w.start(t, batches, "")
	w.await(t, "the sixth run of each lasts, and starts are denied", func() bool {
		return count(w.events(t, "batch"), runlog.Deny) > 1 && count(w.events(t, "nightly"), runlog.Overdue) == 1
	})
	denied := count(w.events(t, "nightly"), runlog.Deny)
	w.await(t, "two more starts are denied", func() bool { return count(w.events(t, "nightly"), runlog.Deny) > denied+1 })
	w.write(t, "go", "", 0o600)
	w.awaitMail(t, `(?m)^adlock: run nightly: overdue: process [0-9]+ has run for [0-9]+s, its notice is 6s; to end it: adlock stop '[^']+/lock\.adlock\.dax\.run\.nightly'; `)
	w.awaitMail(t, `(?m)^batch is done$`)
	if told := strings.Count(w.read(t, "mail"), " overdue: "); told != 1 {
		t.Errorf("%d mails tell of it", told)
	}
	for _, job := range []string{"batch", "nightly"} {
		if events := w.events(t, job); count(events, runlog.Expire)+count(events, runlog.Signal) > 0 {
			t.Errorf("%s was ended: %s", job, w.story(t, job))
		}
	}
	w.await(t, "the job that learns has run six times", func() bool { return count(w.events(t, "learner"), runlog.Acquire) > 5 })
	w.wantLearned(t, "learner")
}

func (w *world) awaitMail(t *testing.T, pattern string) {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	w.await(t, "there is mail like "+pattern, func() bool { return wanted.MatchString(w.read(t, "mail")) })
}

// wantLearned expects no limit in the first five runs of a job, and then the learned one.
func (w *world) wantLearned(t *testing.T, operand string) {
	t.Helper()
	var limits []string
	for _, e := range w.events(t, operand) {
		if e.Kind == runlog.Acquire {
			limits = append(limits, limit.Format(e.ExpireAfter.Value))
		}
	}
	if got := strings.Join(limits, " "); !strings.HasPrefix(got, "never never never never never 10m") {
		t.Errorf("the limits were %s", got)
	}
}
