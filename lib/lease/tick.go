package lease

import (
	"context"

	"adlock/lib/locker"
)

func (l *Locker) usedTick(r *locker.Request) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
	defer cancel()
	return l.Store.HasTick(ctx, r.Atom.Name(), r.Tick)
}

func (t *heldLease) claimTick(r *locker.Request) (bool, error) {
	ctx, cancel := context.WithTimeout(t.ctx, questionTimeout)
	defer cancel()
	t.tick = r.Tick // before the claim, which may succeed though its answer is lost
	return t.place.ClaimTick(ctx, r.Tick)
}
