package policy

import (
	"time"

	"adlock/lib/limit"
)

// Pause keeps newcomers from an atom until the pause is over. A job that is already running goes on.
type Pause struct {
	On     bool          // the pause is in force
	Left   time.Duration // until the pause ends; limit.Never: until a person resumes the atom
	Age    time.Duration
	Why    string // the reason that the person gave; "": none
	Host   bool   // the pause is for all atoms of this host
	Inside bool   // the newcomer belongs to a running job, so it passes
}

// Denies reports whether the pause keeps the newcomer from the atom.
func (p Pause) Denies() bool { return p.On && !p.Inside }

// Reason describes why the pause denies a newcomer.
func (p Pause) Reason() string { return words[Paused] + ": " + p.Figures() }

// Figures is Reason without its first word.
func (p Pause) Figures() string {
	text := "for " + limit.FormatLeft(p.Left) + " more"
	if p.Left == limit.Never {
		text = "until it is resumed"
	}
	if p.Why != "" {
		text += " (" + p.Why + ")"
	}
	return text
}
