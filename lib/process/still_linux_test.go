package process

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
)

func TestAStoppedProcessStandsStill(t *testing.T) {
	begun := time.Now()
	a := actor.Sleeper(t, actor.Leads)
	if still, age := Still(a.PID()); still || age < -2*tick || age > time.Since(begun)+2*tick {
		t.Errorf("still %v, %v old", still, age)
	}
	unix.Kill(a.PID(), unix.SIGSTOP)
	actor.Eventually(t, "it stands still", func() bool { still, _ := Still(a.PID()); return still })
	a.Kill()
	if still, age := Still(a.PID()); still || age != 0 {
		t.Errorf("the dead stand still: %v, since %v", still, age)
	}
	b := actor.Sleeper(t, actor.Leads)
	actor.Undying(t, b)
	unix.Kill(b.PID(), unix.SIGKILL)
	actor.Eventually(t, "its tracer holds it", func() bool { still, _ := Still(b.PID()); return still })
}
