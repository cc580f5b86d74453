package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/atom"
	"adlock/lib/lease"
	"adlock/lib/policy"
)

// A claimed tick is a key with the acquisition's token, on an etcd lease of its own that is never renewed.
const tickForm = "tick/%d-%d" // the period in seconds, and the number

func (k keys) tick(tick policy.Tick) string {
	return k.atom + fmt.Sprintf(tickForm, tick.Period/time.Second, tick.Number)
}

func (s *Store) HasTick(ctx context.Context, name atom.Name, tick policy.Tick) (bool, error) {
	answer, err := s.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(s.keys(name).tick(tick))}})
	return err == nil && firstKey(answer.Responses[0]) != nil, err
}

// ClaimTick puts the key if there is none and the place is still held. It returns true also if the key has
// this place's own token: an earlier claim succeeded, and its answer was lost.
func (p *place) ClaimTick(ctx context.Context, tick policy.Tick) (bool, error) {
	granted, err := p.store.grant(ctx, tick.Life())
	if err != nil {
		return false, p.store.wrap(err)
	}
	key, token := p.keys.tick(tick), p.seat.token()
	answer, err := p.whileMine(ctx, clientv3.OpTxn(
		[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
		[]clientv3.Op{clientv3.OpPut(key, token, clientv3.WithLease(granted.ID))},
		[]clientv3.Op{clientv3.OpGet(key)}))
	if err != nil {
		return false, err
	}
	claim := answer.Responses[0].GetResponseTxn()
	if claim.Succeeded {
		return true, nil
	}
	found := firstKey(claim.Responses[0]) // the new etcd lease has no key, and runs out
	return found != nil && string(found.Value) == token, nil
}

// grant asks the members in turn for an etcd lease, until one answers. A lease whose answer was lost runs out.
func (s *Store) grant(ctx context.Context, life time.Duration) (*clientv3.LeaseGrantResponse, error) {
	for {
		short, cancel := context.WithTimeout(ctx, longestSilence)
		granted, err := s.client.Grant(short, int64((life+time.Second-1)/time.Second))
		cancel()
		if err == nil || !isTransient(err) || !lease.Pause(ctx, 100*time.Millisecond) {
			return granted, err
		}
	}
}

// DisclaimTick removes the key, if it is this place's.
func (p *place) DisclaimTick(ctx context.Context, tick policy.Tick) error {
	key := p.keys.tick(tick)
	own := clientv3.Compare(clientv3.Value(key), "=", p.seat.token())
	_, err := p.store.commit(ctx, txn{[]clientv3.Cmp{own}, []clientv3.Op{clientv3.OpDelete(key)}, nil})
	return err
}
