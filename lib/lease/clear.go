package lease

import (
	"context"
	"errors"
	"strconv"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
)

// Clear removes the found lock of an atom or a slot, and the slots of that acquisition. It stamps nothing. It refuses
// (fault.NotPermitted) while the owner's last heartbeat seems younger than its lease, unless the owner is proved dead.
// It first watches a silent owner for the owner's lease, as a newcomer does. A lock without a record is refused for
// its first minute. Clear returns fault.Usage if nothing is locked, and fault.Denied if the lock changed hands.
func (l *Locker) Clear(name atom.Name, found *locker.View) error {
	object := l.Store.String() + " " + string(name)
	found, err := l.confirm(name, found)
	if err != nil {
		return err
	}
	wants := policy.Terms{Limits: policy.Limits{ExpireAfter: limit.Never}}
	switch step := policy.Decide(wants, policy.Situation{Active: found.Active}).Step; {
	case step == policy.Acquire:
		return fault.New(fault.Usage, object, "is not locked: nothing to clear")
	case !step.Granted() && !found.Silent:
		return fault.New(fault.NotPermitted, object, refusal(found))
	}
	err = l.remove(name, found.Record.Token)
	if errors.Is(err, ErrGone) {
		return fault.New(fault.Denied, object, "has changed hands meanwhile")
	}
	if err != nil {
		return err
	}
	cleared := found.Record
	if cleared.Atom == (atom.Atom{}) {
		cleared.Atom, _ = name.Atom()
	}
	for n := 1; n <= cleared.Slots; n++ {
		if err := l.remove(cleared.Atom.Slot(n), cleared.Token); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
	}
	l.Cleared(cleared, found.Node)
	return nil
}

// confirm returns a newer view of the owner in found, or found itself if that owner has gone. If the clocks
// show that the owner may be dead, confirm first watches for as long as the owner's lease, to be certain.
func (l *Locker) confirm(name atom.Name, found *locker.View) (*locker.View, error) {
	for {
		ctx, cancel := context.WithTimeout(l.context(), l.question())
		seen, err := l.Store.Look(ctx, name, false)
		cancel()
		switch {
		case err != nil || !seen.Held || seen.Owner.Token != found.Record.Token:
			return found, err // the lock has another owner, or is gone: remove reports that
		case seen.Lapsed || !seen.Silent:
			view := l.viewOf(&seen)
			return &view, nil
		}
		Pause(l.context(), l.lease()/30)
	}
}

func (l *Locker) remove(name atom.Name, token string) error {
	return l.once(l.context(), func(ctx context.Context) error { return l.Store.Remove(ctx, name, token) })
}

// once calls giveUp, and calls it again if the store does not answer and the context is not done. If the
// second call returns ErrGone, the first has succeeded, and once returns nil.
func (l *Locker) once(until context.Context, giveUp func(context.Context) error) error {
	err := l.try(until, giveUp)
	if fault.KindOf(err) != fault.Unavailable || until.Err() != nil {
		return err
	}
	if err = l.try(until, giveUp); errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// Renewed is the error of Store.Remove for a lock whose owner has sent a heartbeat since the store last read it.
func Renewed(s Store, name atom.Name) error {
	return fault.New(fault.NotPermitted, s.String()+" "+string(name), "its owner lives: its lease was renewed meanwhile")
}

func refusal(found *locker.View) string {
	who := "process " + strconv.Itoa(found.Record.Owner.PID) + " on " + found.Node
	if found.Active.Empty {
		return "has no record yet: it was made less than a minute ago"
	}
	return "its owner lives (" + who + "), as far as is known: its lease is renewed"
}
