package ftp

import (
	"context"
	"maps"

	"adlock/lib/atom"
	"adlock/lib/lease"
)

// Remove marks the generation with this token ("": it has no record) as released, as its owner would.
func (s *Store) Remove(ctx context.Context, name atom.Name, token string) error {
	before := maps.Clone(s.seen)
	f, err := s.look(ctx, name, 0, nil)
	g := f.ahead
	switch {
	case err != nil:
		return err
	case g == nil || g.record.Token != token:
		return lease.ErrGone
	case before[s.dirOf(name, g.n)].token == token && before[s.dirOf(name, g.n)].beat != g.beat:
		return lease.Renewed(s, name)
	case g.bare:
		return s.put(ctx, s.dirOf(name, g.n)+"/released", nil)
	}
	return s.release(ctx, s.dirOf(name, g.n), g.record.Bytes())
}

// release marks a generation as released: by a rename, which works on a full disk too, or, if refused, by a copy of
// the record. It returns ErrGone if the generation already was, perhaps by an earlier try without an answer.
func (s *Store) release(ctx context.Context, dir string, record []byte) error {
	owner, released := dir+"/owner", dir+"/released"
	if err := s.rename(ctx, owner, released); !isAnswer(err) {
		return err
	}
	if _, err := s.modified(ctx, owner); isMissing(err) {
		return lease.ErrGone
	} else if err != nil {
		return err
	}
	return s.refused("cannot give back "+dir, s.put(ctx, released, record))
}
