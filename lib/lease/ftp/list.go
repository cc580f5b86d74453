package ftp

import (
	"context"
	"maps"
	"slices"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
)

// List reads every atom of the directory, one after the other. It finds no waiters: they store nothing.
func (s *Store) List(ctx context.Context) ([]lease.Listed, error) {
	names, err := s.known(ctx)
	if err != nil {
		return nil, err
	}
	var all []lease.Listed
	for _, name := range atomsIn(names) {
		l := s.listed(ctx, name, names)
		if fault.KindOf(l.Err) == fault.Unavailable {
			return nil, l.Err
		}
		all = append(all, l)
	}
	return all, nil
}

func (s *Store) known(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lease.ListTimeout)
	defer cancel()
	return s.list(ctx)
}

func atomsIn(names []string) []atom.Name {
	all := map[atom.Name]bool{}
	for _, name := range names {
		if f := atom.ParseFile(name); f.Kind == atom.Generation || f.Kind == atom.LastLock {
			all[f.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (s *Store) listed(ctx context.Context, name atom.Name, names []string) (l lease.Listed) {
	ctx, cancel := context.WithTimeout(ctx, lease.ListTimeout)
	defer cancel()
	l.Name = name
	f, err := s.lookAt(ctx, name, names, 0, nil)
	if err == nil {
		l.Snapshot, err = s.snapshot(ctx, name, f)
	}
	l.Err = err
	return l
}
