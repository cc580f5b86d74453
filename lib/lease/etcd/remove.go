package etcd

import (
	"cmp"
	"context"
	"math"

	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/atom"
	"adlock/lib/lease"
)

// Remove deletes the place with this token, a writer's or a reader's.
func (s *Store) Remove(ctx context.Context, name atom.Name, token string) error {
	k, writer, reader := s.keys(name), seatOf(token, false), seatOf(token, true)
	answer, again, err := s.ask(ctx, txn{
		[]clientv3.Cmp{s.unmoved(k.beat(writer)), s.unmoved(k.beat(reader))},
		append(k.remove(writer), k.remove(reader)[:2]...),
		[]clientv3.Op{clientv3.OpGet(k.line(writer)), clientv3.OpGet(k.line(reader))},
	})
	if err != nil {
		return err
	}
	there := int64(0)
	for _, response := range answer.Responses {
		there += response.GetResponseDeleteRange().GetDeleted() + response.GetResponseRange().GetCount()
	}
	switch {
	case there == 0 && !again: // if the transaction was sent twice, the first may have removed the place
		return lease.ErrGone
	case there > 0 && !answer.Succeeded:
		return lease.Renewed(s, name)
	}
	return nil
}

func (s *Store) unmoved(beat string) clientv3.Cmp {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clientv3.Compare(clientv3.ModRevision(beat), "<", cmp.Or(s.beats[beat].revision, math.MaxInt64-1)+1) // not read: any
}
