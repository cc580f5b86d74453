package lease

import (
	"context"

	"adlock/lib/locker"
)

// usedTick reports whether the newcomer's tick was claimed.
func (l *Locker) usedTick(r *locker.Request) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
	defer cancel()
	return l.Store.HasTick(ctx, r.Atom.Name(), r.Tick)
}

// claimTick claims the tick of an atom that is held.
func (t *heldLease) claimTick(r *locker.Request) (bool, error) {
	ctx, cancel := context.WithTimeout(t.ctx, questionTimeout)
	defer cancel()
	t.tick = r.Tick // even if the answer is lost
	return t.place.ClaimTick(ctx, r.Tick)
}

// disclaimTick gives back the tick of a run that does not count.
func (t *heldLease) disclaimTick(ctx context.Context) error {
	if !t.tick.Asked() {
		return nil
	}
	return t.place.DisclaimTick(ctx, t.tick)
}
