package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/atom"
	"adlock/lib/policy"
)

// A claimed tick is a key with the token of the acquisition. The key has an etcd lease of its own
// that is never renewed.

const tickForm = "tick/%d-%d" // the period in seconds, and the number

func (k keys) tick(tick policy.Tick) string {
	return k.atom + fmt.Sprintf(tickForm, tick.Period/time.Second, tick.Number)
}

// HasTick looks for the key.
func (s *Store) HasTick(ctx context.Context, name atom.Name, tick policy.Tick) (bool, error) {
	found, err := s.client.Get(ctx, s.keys(name).tick(tick), clientv3.WithCountOnly())
	if err != nil {
		return false, s.wrap(err)
	}
	return found.Count > 0, nil
}

// ClaimTick puts the key if there is none and the place is still held. If the key has this place's
// own token, an earlier claim succeeded and its answer was lost.
func (p *place) ClaimTick(ctx context.Context, tick policy.Tick) (bool, error) {
	granted, err := p.store.client.Grant(ctx, int64((tick.Life()+time.Second-1)/time.Second))
	if err != nil {
		return false, p.store.wrap(err)
	}
	key := p.keys.tick(tick)
	absent := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	answers, err := p.whileMine(ctx, clientv3.OpTxn([]clientv3.Cmp{absent},
		[]clientv3.Op{clientv3.OpPut(key, p.record.Token, clientv3.WithLease(granted.ID))},
		[]clientv3.Op{clientv3.OpGet(key)}))
	if err != nil {
		return false, err
	}
	answer := answers[0].GetResponseTxn()
	if answer.Succeeded {
		return true, nil
	}
	_, _ = p.store.client.Revoke(ctx, granted.ID) // if this fails, the lease runs out
	found := answer.Responses[0].GetResponseRange().Kvs
	return len(found) == 1 && string(found[0].Value) == p.record.Token, nil
}

// DisclaimTick removes the key, if it is this place's.
func (p *place) DisclaimTick(ctx context.Context, tick policy.Tick) error {
	key := p.keys.tick(tick)
	own := clientv3.Compare(clientv3.Value(key), "=", p.record.Token)
	_, err := p.store.client.Txn(ctx).If(own).Then(clientv3.OpDelete(key)).Commit()
	return p.store.wrap(err)
}
