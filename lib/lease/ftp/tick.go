package ftp

import (
	"context"
	"slices"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/atom"
	"adlock/lib/policy"
)

// A claimed tick is a directory, because MKD is the test-and-set. Each claim removes the ticks
// whose life is over.

// HasTick looks for the directory.
func (s *Store) HasTick(ctx context.Context, name atom.Name, tick policy.Tick) (bool, error) {
	names, err := s.list(ctx)
	return slices.Contains(names, name.Tick(tick.Period, tick.Number)), err
}

// ClaimTick makes the directory.
func (p *place) ClaimTick(ctx context.Context, tick policy.Tick) (bool, error) {
	if p.claimed == tick {
		return true, nil
	}
	dir := p.store.in(p.name.Tick(tick.Period, tick.Number))
	err := p.store.do(ctx, func(c *client.ServerConn) error { return c.MakeDir(dir) })
	if isMissing(err) { // 550 is also the answer if the directory exists
		if used, err := p.store.HasTick(ctx, p.name, tick); used || err != nil {
			return false, err
		}
		return false, p.store.refused("cannot make "+dir, err)
	}
	if err != nil {
		return false, err
	}
	p.claimed = tick
	names, err := p.store.list(ctx)
	if err == nil && !slices.Contains(names, p.name.Tick(tick.Period, tick.Number)) {
		err = p.store.unlisted(dir)
	}
	if err != nil {
		return false, err
	}
	p.removeOutlived(ctx, tick, names)
	return true, nil
}

// removeOutlived is best effort: the next claim tries again.
func (p *place) removeOutlived(ctx context.Context, tick policy.Tick, names []string) {
	for _, dir := range names {
		if f := atom.ParseFile(dir); f.Kind == atom.Tick && f.Name == p.name && tick.Outlived(f.Period, f.Number) {
			_ = p.removeTick(ctx, dir)
		}
	}
}

func (p *place) removeTick(ctx context.Context, dir string) error {
	return ignoreMissing(p.store.do(ctx, func(c *client.ServerConn) error { return c.RemoveDir(p.store.in(dir)) }))
}

// DisclaimTick removes the directory that ClaimTick has made. If the server did not confirm the
// making, the directory may be another acquisition's, and stays.
func (p *place) DisclaimTick(ctx context.Context, tick policy.Tick) error {
	if p.claimed != tick {
		return nil
	}
	return p.removeTick(ctx, p.name.Tick(tick.Period, tick.Number))
}
