package ftp

import (
	"context"

	"adlock/lib/atom"
	"adlock/lib/lease"
)

// Remove marks the generation with this token ("": it has no record) as released, as its owner would have.
func (s *Store) Remove(ctx context.Context, name atom.Name, token string) error {
	f, err := s.look(ctx, name, 0, nil)
	g := f.ahead
	switch {
	case err != nil:
		return err
	case g == nil || g.record.Token != token:
		return lease.ErrGone
	case g.bare:
		return s.put(ctx, s.dirOf(name, g.n)+"/released", nil)
	}
	owner, released := s.dirOf(name, g.n)+"/owner", s.dirOf(name, g.n)+"/released"
	if err = s.rename(ctx, owner, released); !isAnswer(err) {
		return err
	}
	if _, err = s.modified(ctx, owner); isMissing(err) {
		return lease.ErrGone
	} else if err != nil {
		return err
	}
	return s.put(ctx, released, g.record.Bytes()) // the server does not rename
}
