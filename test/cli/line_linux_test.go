package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/check"
	"adlock/test/support/helper"
)

// line is a lock directory in which runs wait for one atom.
type line struct {
	*stage
	waiting []*helper.Process
}

// joins starts a run that waits for the atom, and returns when it is in the queue. The run writes its name.
func (l *line) joins(name string, options ...string) *helper.Process {
	l.Helper()
	script := `echo "$1" >>came; until [ -e "let-$1" ] || [ ! -e "stays-$1" ]; do sleep 0.01; done`
	words := slices.Concat([]string{"run", "--program", "job", "--name", "a", "--wait", "forever"}, options, []string{"sh", "-c", script, "sh", name})
	p := l.command(words...).Start(l)
	helper.Eventually(l, name+" is in the line", func() bool { return blocks(p.PID) })
	l.waiting = append(l.waiting, p)
	return p
}

// blocks tells whether the run waits in flock(2), or has waited there and now watches the directory.
func blocks(pid int) bool { return hasOpen(pid, "signalfd") || flockWaits(pid) }

func (l *line) came() string {
	text, _ := os.ReadFile(l.in("came"))
	return strings.Join(strings.Fields(string(text)), " ")
}

func (l *line) end() {
	l.Helper()
	for _, p := range l.waiting {
		p.Is(l, 0, "…")
	}
}

// A process that dies or is stopped in flock(2) wakes the next one in the queue, which asks again.
func TestTheQueueKeepsItsOrderWhenWaitersDieOrStop(t *testing.T) {
	l := &line{stage: newStage(t)}
	owner := l.hold("a")
	for n := range 8 {
		l.joins(fmt.Sprint(n))
	}
	all := l.waiting
	leaves := func(n int, sig syscall.Signal) {
		p := all[n]
		p.Signal(t, sig)
		l.waiting = slices.DeleteFunc(slices.Clone(l.waiting), func(other *helper.Process) bool { return other == p })
		if sig == syscall.SIGSTOP {
			helper.Eventually(t, "it has left the line", func() bool { return !blocks(p.PID) })
		} else {
			p.Wait(t)
		}
		for _, other := range l.waiting {
			helper.Eventually(t, "the rest are in the line", func() bool { return blocks(other.PID) })
		}
	}
	leaves(0, syscall.SIGKILL)
	leaves(2, syscall.SIGSTOP)
	leaves(4, syscall.SIGTERM)
	leaves(5, syscall.SIGKILL)
	leaves(7, syscall.SIGTERM)
	owner.Signal(t, syscall.SIGTERM)
	l.end()
	all[2].Signal(t, syscall.SIGCONT)
	l.waiting = all[2:3]
	l.end()
	check.Equal(t, "came", l.came(), "1 3 6 2")
}

func TestAHandOverWakesNoOtherWaiter(t *testing.T) { wakesNoOther(t, 10, 30) }

// wakesNoOther hands the atom on, with that many waiters behind those whose turn comes. A waiter wakes
// when its turn comes, and otherwise only to check the lock, every few seconds.
func wakesNoOther(t *testing.T, passing, staying int) {
	l := &line{stage: newStage(t)}
	owner := l.hold("a")
	for n := range passing {
		l.joins(fmt.Sprint(n))
	}
	l.in("stays-last", "")
	l.joins("last")
	for n := range staying {
		l.joins(fmt.Sprint("after-", n))
	}
	began := time.Now()
	before := l.switches(staying)
	owner.Signal(t, syscall.SIGTERM)
	helper.Eventually(t, "their turn has come", func() bool { return strings.HasSuffix(l.came(), "last") })
	more, looks := l.switches(staying)-before, 1+int(time.Since(began)/(2*time.Second)) // they are 2.5 s apart
	if most := staying * 6 * looks; more > most {
		t.Errorf("%d waiters were switched to %d times in %d hand-overs, want %d", staying, more, passing, most)
	}
	l.in("let-last", "")
	l.end()
	var want []string
	for n := range passing {
		want = append(want, itoa(n))
	}
	want = append(want, "last")
	for n := range staying {
		want = append(want, fmt.Sprint("after-", n))
	}
	check.Equal(t, "came", l.came(), strings.Join(want, " "))
}

// switches counts the voluntary context switches of the last runs that wait.
func (l *line) switches(last int) (sum int) {
	l.Helper()
	for _, p := range l.waiting[len(l.waiting)-last:] {
		sum += helper.Switches(l, p.PID)
	}
	return sum
}
