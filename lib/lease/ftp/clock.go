package ftp

import (
	"context"
	"time"

	"adlock/lib/lease"
)

// Elapsed is by the server's clock alone, which has stamped the last lock and has been
// asked for the snapshot; in whole seconds.
func (s *Store) Elapsed(_ context.Context, seen *lease.Snapshot) (time.Duration, error) {
	return seen.Now.Sub(seen.Last.Completed), nil
}
