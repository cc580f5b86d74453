package etcd

import (
	"context"

	"adlock/lib/atom"
	"adlock/lib/lease"
)

// Remove deletes the place with this token, a writer's or a reader's.
func (s *Store) Remove(ctx context.Context, name atom.Name, token string) error {
	k := s.keys(name)
	answer, again, err := s.ask(ctx, txn{then: append(k.remove(seatOf(token, false)), k.remove(seatOf(token, true))[:2]...)})
	if err != nil {
		return err
	}
	removed := int64(0)
	for _, response := range answer.Responses {
		removed += response.GetResponseDeleteRange().Deleted
	}
	if removed == 0 && !again { // if the transaction was sent twice, the first may have removed the place
		return lease.ErrGone
	}
	return nil
}
