package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/limit"
	"adlock/lib/store"
)

type responseOp = etcdserverpb.ResponseOp

// place is a key in the line.
type place struct {
	store    *Store
	keys     keys
	key      string
	revision int64 // the key's create revision: where it stands, and its fence
	lease    clientv3.LeaseID
	length   time.Duration
	record   store.Record // as it was at first
}

func (p *place) Lease() time.Duration { return p.length }

func (p *place) Fence() uint64 { return uint64(p.revision) }

// mine is true while the place is held: a key that was deleted and put again has
// another create revision.
func (p *place) mine() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(p.key), "=", p.revision)
}

// whileMine carries the operations out, if the place is still held.
func (p *place) whileMine(ctx context.Context, ops ...clientv3.Op) ([]*responseOp, error) {
	answer, err := p.store.client.Txn(ctx).If(p.mine()).Then(ops...).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return nil, store.ErrGone
	case err != nil:
		return nil, p.store.wrap(err)
	case !answer.Succeeded:
		return nil, store.ErrGone
	}
	return answer.Responses, nil
}

func (p *place) look() []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(p.keys.last()), first(p.keys.inFront(p.record.Shared), p.revision)}
}

func (p *place) Look(ctx context.Context) (store.Sight, error) {
	answers, err := p.whileMine(ctx, p.look()...)
	if err != nil {
		return store.Sight{}, err
	}
	return sight(answers, p.key)
}

func (p *place) Note(ctx context.Context, record store.Record) (store.Sight, error) {
	put := clientv3.OpPut(p.key, string(record.Bytes()), clientv3.WithLease(p.lease))
	answers, err := p.whileMine(ctx, append([]clientv3.Op{put}, p.look()...)...)
	if err != nil {
		return store.Sight{}, err
	}
	return sight(answers[1:], p.key)
}

// Await watches the one key directly in front.
func (p *place) Await(ctx context.Context) error {
	found, err := p.store.client.Get(ctx, p.keys.inFront(p.record.Shared), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithLimit(1), clientv3.WithMaxCreateRev(p.revision-1),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return p.store.wrap(err)
	case len(found.Kvs) == 0:
		return nil
	}
	return p.awaitEvent(ctx, string(found.Kvs[0].Key), found.Header.Revision+1, clientv3.WithFilterPut())
}

// awaitEvent returns when something has happened to the key since the revision.
func (p *place) awaitEvent(ctx context.Context, key string, since int64, options ...clientv3.OpOption) error {
	// A member that has no leader would keep silent for as long as that lasts.
	watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	for answer := range p.store.client.Watch(watching, key, append(options, clientv3.WithRev(since))...) {
		if err := answer.Err(); err != nil && ctx.Err() == nil {
			return p.store.wrap(err)
		}
		if len(answer.Events) > 0 {
			return nil
		}
	}
	return nil
}

func (p *place) Ask(ctx context.Context, token string, pause time.Duration) error {
	_, err := p.whileMine(ctx, clientv3.OpPut(p.keys.ask(token), limit.Format(pause), clientv3.WithLease(p.lease)))
	return err
}

// Asked looks first: what was asked before the watch began would not be told.
func (p *place) Asked(ctx context.Context) (time.Duration, error) {
	key := p.keys.ask(p.record.Token)
	for {
		found, err := p.store.client.Get(ctx, key)
		if err != nil {
			return 0, p.store.wrap(err)
		}
		if len(found.Kvs) > 0 {
			pause, err := limit.Parse(string(found.Kvs[0].Value))
			return pause, err
		}
		if err := p.awaitEvent(ctx, key, found.Header.Revision+1); err != nil {
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}

// Pass removes the key of a dead owner; one that has gone by itself needs
// neither that nor the stamp.
func (p *place) Pass(ctx context.Context, token string, stamp *store.Last) error {
	remove := func(key string) clientv3.Op {
		there := clientv3.Compare(clientv3.CreateRevision(key), ">", 0)
		ops := []clientv3.Op{clientv3.OpDelete(key)}
		if stamp != nil {
			ops = append(ops, clientv3.OpPut(p.keys.last(), string(stamp.Bytes())))
		}
		return clientv3.OpTxn([]clientv3.Cmp{there}, ops, nil)
	}
	key := p.keys.place(token, false)
	found, err := p.store.client.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil {
		return p.store.wrap(err)
	}
	if found.Count == 0 {
		key = p.keys.place(token, true)
	}
	_, err = p.whileMine(ctx, remove(key))
	return err
}

// Renew asks for the key too: a leader that was cut off may confirm a renewal
// that its successor knows nothing of, but cannot answer a linearizable read.
func (p *place) Renew(ctx context.Context) error {
	_, err := p.store.client.KeepAliveOnce(ctx, p.lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return store.ErrGone
	}
	if err != nil {
		return p.store.wrap(err)
	}
	_, err = p.whileMine(ctx, clientv3.OpGet(p.key, clientv3.WithKeysOnly()))
	return err
}

func (p *place) Leave(ctx context.Context, stamp *store.Last) error {
	ops := []clientv3.Op{clientv3.OpDelete(p.key), clientv3.OpDelete(p.keys.ask(p.record.Token))}
	if stamp != nil {
		ops = append(ops, clientv3.OpPut(p.keys.last(), string(stamp.Bytes())))
	}
	if _, err := p.whileMine(ctx, ops...); err != nil {
		return err
	}
	p.revoke()
	return nil
}

// revoke gives the lease back, and does not wait for that: nothing hangs on it any
// more, and it runs out by itself where this process exits before it is heard.
func (p *place) revoke() {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = p.store.client.Revoke(ctx, p.lease)
	}()
}
