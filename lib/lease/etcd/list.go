package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/atom"
	"adlock/lib/lease"
)

const pageSize = 1000

// List reads every atom below the prefix, all at one revision.
func (s *Store) List(ctx context.Context) ([]lease.Listed, error) {
	keys, err := s.everything(ctx)
	if err != nil {
		return nil, s.wrap(err)
	}
	var all []lease.Listed
	for len(keys) > 0 {
		name, is := s.nameOf(keys[0])
		n := 1
		for n < len(keys) && s.atomOf(keys[0]) == s.atomOf(keys[n]) {
			n++
		}
		if is {
			all = s.list(all, name, keys[:n])
		}
		keys = keys[n:]
	}
	return all, nil
}

func (s *Store) everything(ctx context.Context) (keys []*mvccpb.KeyValue, err error) {
	from := s.prefix + "/"
	end := clientv3.GetPrefixRangeEnd(from)
	for revision := int64(0); ; {
		page, err := s.page(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		if keys = append(keys, page.Kvs...); !page.More {
			return keys, nil
		}
		revision, from = page.Header.Revision, string(keys[len(keys)-1].Key)+"\x00"
	}
}

func (s *Store) page(ctx context.Context, from string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, lease.ListTimeout)
	defer cancel()
	answer, err := s.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(from, options...)}})
	if err != nil {
		return nil, err
	}
	page := (*clientv3.GetResponse)(answer.Responses[0].GetResponseRange())
	page.Header = answer.Header
	return page, nil
}

func (s *Store) atomOf(key *mvccpb.KeyValue) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(string(key.Key), s.prefix+"/"), "/")
	return name
}

// nameOf returns the name of the key's atom; false for a key that is not adlock's.
func (s *Store) nameOf(key *mvccpb.KeyValue) (atom.Name, bool) {
	text := s.atomOf(key)
	lock, is := atom.LockCalled(text)
	return lock.Name, is && string(lock.Name) == text
}

func (s *Store) list(all []lease.Listed, name atom.Name, keys []*mvccpb.KeyValue) []lease.Listed {
	k := s.keys(name)
	var last *mvccpb.KeyValue
	var line []*mvccpb.KeyValue
	var ticks []atom.File
	beats := map[string]*mvccpb.KeyValue{}
	for _, key := range keys {
		switch text := string(key.Key); {
		case text == k.last():
			last = key
		case strings.HasPrefix(text, k.line(everyone)):
			line = append(line, key)
		case strings.HasPrefix(text, k.beat(everyone)):
			beats[text] = key
		default:
			var seconds, number int
			if n, _ := fmt.Sscanf(strings.TrimPrefix(text, k.atom), tickForm, &seconds, &number); n == 2 {
				ticks = append(ticks, atom.File{Kind: atom.Tick, Name: name, Period: time.Duration(seconds) * time.Second, Number: number})
			}
		}
	}
	if last == nil && len(line) == 0 {
		return all
	}
	slices.SortFunc(line, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
	l := lease.Listed{Name: name, Ticks: ticks}
	l.Snapshot, l.Err = lastLock(last)
	if len(line) > 0 && l.Err == nil {
		f := &front{seat: k.seatOf(line[0]), place: line[0]}
		l.Err = s.describe(&l.Snapshot, f, k, beats[k.beat(f.seat)])
	}
	for _, key := range line[min(1, len(line)):] {
		if behind, err := lease.ParseRecord(string(key.Key), key.Value); err == nil {
			l.Behind = append(l.Behind, behind)
		}
	}
	return append(all, l)
}
