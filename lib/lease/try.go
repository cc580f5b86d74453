package lease

import (
	"cmp"
	"context"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lease/listing"
	"adlock/lib/process"
)

// Try takes a lease on an atom of this machine's own, renews it and gives it back, for adlock doctor. The
// error is that of the first step that fails; t has what the steps before it have shown.
func (l *Locker) Try() (t listing.Trial, err error) {
	node, err := NodeName()
	if err != nil {
		return t, err
	}
	a, err := atom.New(atom.NamedProgram, node, trialOperator, trialOperand)
	if err != nil {
		return t, err
	}
	own, err := forMoment(a.Name())
	if err != nil {
		return t, err
	}
	own.Atom, own.Lease = a, l.lease()
	began := process.Boottime()
	var seen Snapshot
	err = l.ask(l.context(), func(ctx context.Context) (err error) {
		seen, err = l.Store.Look(ctx, own.Atom.Name(), false)
		return err
	})
	if err != nil {
		return t, err
	}
	t.Answer, t.Ahead = process.Boottime()-began, time.Until(seen.Now)
	if err = l.tryLease(own); err != nil {
		return t, err
	}
	t.Lease = own.Lease
	found, err := l.Store.List(l.context())
	for i := range found {
		if last := found[i].Last.Completed; found[i].Err == nil && !last.IsZero() {
			t.Ahead = max(t.Ahead, last.Sub(found[i].Now))
		}
	}
	return t, err
}

func isTrial(name atom.Name) bool {
	a, whole := name.Atom()
	return whole && a.Program == atom.NamedProgram && a.Operator == trialOperator && a.Operand == trialOperand
}

const trialOperator, trialOperand = "doctor", "store"

func (l *Locker) tryLease(own Record) error {
	ctx, cancel := context.WithTimeout(l.context(), 3*l.question())
	defer cancel()
	place, _, err := l.Store.Enter(ctx, own.Atom.Name(), own, true)
	if err != nil {
		return err
	}
	err = place.Renew(ctx)
	return cmp.Or(err, place.Leave(ctx, nil))
}
