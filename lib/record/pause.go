package record

import (
	"time"

	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// Pause denies starts: of one atom in a last lock, of all atoms in the host's file. The zero Pause denies none.
type Pause struct {
	Since    time.Time
	For      time.Duration // limit.Never: until a person ends the pause
	Why      string
	boot     string        // the boot in which it began
	machine  string        // the machine on which it began
	timeNS   uint64        // the time namespace in which it began
	boottime time.Duration // when it began, since that boot
}

// NewPause returns a pause that begins now and lasts for d.
func NewPause(d time.Duration, why string) Pause {
	here := process.Here()
	return Pause{time.Now(), d, why, here.BootID(), here.Machine, here.TimeNS, process.Boottime()}
}

// Policy returns the pause as it is now. Within the boot in which it began, its age is measured by the
// boottime clock, otherwise by the wall clock. After a reboot of that machine the pause is at least as old as the
// boot: so it ends even if the wall clock was far ahead when the pause began.
func (p Pause) Policy() policy.Pause {
	if p.Since.IsZero() {
		return policy.Pause{}
	}
	here, up := process.Here(), process.Boottime()
	age := time.Since(p.Since)
	switch sameClock := p.boot != "" && p.machine == here.Machine && p.timeNS == here.TimeNS; {
	case sameClock && p.boot == here.Boot:
		age = up - p.boottime
	case sameClock && p.machine != "":
		age = max(age, up)
	}
	view := policy.Pause{On: p.For == limit.Never || age < p.For, Left: limit.Never, Age: max(0, age), Why: p.Why}
	if p.For != limit.Never {
		view.Left = p.For - view.Age
	}
	return view
}

// Bytes returns the lines of the pause; none for the zero value.
func (p Pause) Bytes() []byte { return Memory{Pause: p}.Bytes() }

func (p *Pause) lines(l *Lines) {
	l.Instant("paused", &p.Since)
	l.limit("paused_for", &p.For)
	l.Quoted("paused_why", &p.Why)
	l.Text("paused_boot", &p.boot)
	l.Text("paused_machine", &p.machine)
	l.uint("paused_timens", &p.timeNS)
	l.Duration("paused_boottime", &p.boottime)
}

// ParsePause parses what Bytes returned; content of another form, or without a pause, is an error.
func ParsePause(content []byte) (Pause, error) {
	m, err := ParseMemory(content)
	if err == nil && m.Pause == (Pause{}) {
		err = errFormat
	}
	return m.Pause, err
}
