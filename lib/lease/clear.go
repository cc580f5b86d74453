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

// Clear removes a lock that was found, of an atom or a slot, whose owner a person has
// judged dead. It is refused (fault.NotPermitted) for one that lives as far as is
// known: it gives signs of life, and this machine does not know better. A newcomer
// would wait for a lease until it took one that is silent for dead. Nothing is stamped,
// as nothing has completed.
func (l *Locker) Clear(name atom.Name, found *locker.View) error {
	object := l.Store.String() + " " + string(name)
	found, err := l.watched(name, found)
	if err != nil {
		return err
	}
	wants := policy.Terms{Limits: policy.Limits{ExpireAfter: limit.Never}}
	switch step := policy.Decide(wants, policy.Situation{Active: found.Active}).Step; {
	case step == policy.Acquire:
		return fault.New(fault.Usage, object, "is not held: there is nothing to clear")
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

// watched is what was found once it is certain whether its owner is dead, where the store
// says that it may be: that takes as long as the owner's lease.
func (l *Locker) watched(name atom.Name, found *locker.View) (*locker.View, error) {
	for {
		ctx, cancel := context.WithTimeout(l.context(), l.question())
		seen, err := l.Store.Look(ctx, name, false)
		cancel()
		switch {
		case err != nil || !seen.Held || seen.Owner.Token != found.Record.Token:
			return found, err // another one, or gone: remove says so
		case seen.Lapsed || !seen.Silent:
			view := l.viewOf(&seen)
			return &view, nil
		}
		l.pause(l.lease() / 30)
	}
}

func (l *Locker) remove(name atom.Name, token string) error {
	return l.once(l.context(), func(ctx context.Context) error { return l.Store.Remove(ctx, name, token) })
}

// once gives up what is there once. A store that does not answer is asked again, and where
// there is nothing any more then, it was the answer alone that was lost.
func (l *Locker) once(until context.Context, giveUp func(context.Context) error) error {
	ask := func() error {
		ctx, cancel := context.WithTimeout(until, l.question())
		defer cancel()
		return giveUp(ctx)
	}
	err := ask()
	if fault.KindOf(err) != fault.Unavailable || until.Err() != nil {
		return err
	}
	if err = ask(); errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// refusal says why a lock is not cleared.
func refusal(found *locker.View) string {
	who := "process " + strconv.Itoa(found.Record.Owner.PID) + " on " + found.Node
	switch {
	case found.Active.Empty:
		return "does not say whose it is yet: it was made less than a minute ago"
	case found.Active.Owner == policy.Orphaned:
		return "its owner is dead, but not all of its job (" + who + ")"
	}
	return "its owner lives (" + who + "), as far as is known: its lease is renewed"
}
