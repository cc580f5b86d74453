package ftp

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/exit"
	"adlock/lib/limit"
	"adlock/lib/store"
)

// place is a newcomer's: with a generation of its own it has the atom.
type place struct {
	store  *Store
	files  string
	record store.Record
	length time.Duration

	own    atomic.Int64 // its generation; 0: none yet
	ahead  *generation  // in the way, when it last looked; nil: none
	passed passed
}

// Enter tries to have the atom at once; there is no line to stand in, and so
// nobody in the way by waiting.
func (s *Store) Enter(ctx context.Context, files string, record store.Record, lease time.Duration, line bool) (store.Place, store.Sight, error) {
	if record.Shared {
		return nil, store.Sight{}, exit.New(exit.Usage, s.String(), store.ErrShared.Error())
	}
	record.Lease = lease
	p := &place{store: s, files: files, record: record, length: lease, passed: passed{}}
	seen, err := p.Look(ctx)
	if err != nil || seen.Held && !line {
		return nil, seen, err
	}
	return p, seen, nil
}

func (p *place) Lease() time.Duration { return p.length }

func (p *place) Fence() uint64 { return uint64(p.n()) }

func (p *place) n() int { return int(p.own.Load()) }

func (p *place) dir() string { return p.store.dirOf(p.files, p.n()) }

// Look takes the atom where nothing is in the way.
func (p *place) Look(ctx context.Context) (store.Sight, error) {
	if p.n() > 0 {
		if err := p.held(ctx); err != nil {
			return store.Sight{}, err
		}
		return p.store.sight(ctx, p.files, nil)
	}
	g, largest, err := p.store.inTheWay(ctx, p.files, 0, p.passed)
	if err == nil && g == nil {
		g, err = p.claim(ctx, largest+1)
	}
	if err != nil {
		return store.Sight{}, err
	}
	p.ahead = g
	return p.store.sight(ctx, p.files, g)
}

// claim makes generation n, says who it is, and then looks at the others once
// more. It returns whoever is in the way after all.
func (p *place) claim(ctx context.Context, n int) (*generation, error) {
	err := p.store.do(ctx, func(c *client.ServerConn) error { return c.MakeDir(p.store.dirOf(p.files, n)) })
	if isMissing(err) { // 550 is also the answer where somebody else was faster
		return p.overtaken(ctx, n, err)
	}
	if err != nil {
		return nil, err
	}
	p.own.Store(int64(n))
	g, err := p.settle(ctx)
	if err != nil || g != nil {
		p.withdraw()
		return g, err
	}
	p.clean(ctx)
	return nil, nil
}

// overtaken tells a generation that somebody else has made from a directory that
// may not be made at all.
func (p *place) overtaken(ctx context.Context, n int, refusal error) (*generation, error) {
	g, largest, err := p.store.inTheWay(ctx, p.files, 0, p.passed)
	if err != nil || g != nil {
		return g, err
	}
	if largest >= n { // it has come and gone: the caller finds it busy, and looks again
		return &generation{n: largest, bare: true}, nil
	}
	return nil, p.store.refused("cannot make "+p.store.dirOf(p.files, n), refusal)
}

func (p *place) settle(ctx context.Context) (*generation, error) {
	err := p.store.put(ctx, p.dir()+"/owner", p.record.Bytes())
	if err == nil {
		err = p.beat(ctx)
	}
	if err != nil {
		if errors.Is(p.held(ctx), store.ErrGone) { // others went past it, and cleaned up
			return &generation{n: p.n(), bare: true}, nil
		}
		return nil, err
	}
	g, largest, err := p.store.inTheWay(ctx, p.files, p.n(), p.passed)
	if err == nil && g == nil && largest > p.n() {
		g = &generation{n: largest, bare: true} // it stands higher, whatever has become of it
	}
	return g, err
}

// withdraw removes what claim has made: a mark that it was released would stand
// in front of whoever owns the atom. What cannot be removed is a generation
// without a beat soon.
func (p *place) withdraw() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	p.store.removeGeneration(ctx, p.files, p.n())
	p.own.Store(0)
}

// clean removes the generations below: they are released, or their owners dead.
func (p *place) clean(ctx context.Context) {
	list, err := p.store.generations(ctx, p.files)
	for _, n := range list {
		if err == nil && n < p.n() {
			p.store.removeGeneration(ctx, p.files, n)
		}
	}
}

// removeGeneration is best effort: the next owner tries again. The record goes
// last, so that none that still has one loses it first.
func (s *Store) removeGeneration(ctx context.Context, files string, n int) {
	dir := s.dirOf(files, n)
	for _, name := range []string{"beat", "ask", "seen", "owner", "released"} {
		_ = s.remove(ctx, dir+"/"+name)
	}
	_ = s.do(ctx, func(c *client.ServerConn) error { return c.RemoveDir(dir) })
}

// beat is empty, so that a full disk does not end a job.
func (p *place) beat(ctx context.Context) error { return p.store.put(ctx, p.dir()+"/beat", nil) }

// held looks for a larger generation, and for one's own.
func (p *place) held(ctx context.Context) error {
	list, err := p.store.generations(ctx, p.files)
	if err != nil {
		return err
	}
	if len(list) == 0 || list[0] != p.n() {
		return store.ErrGone
	}
	return nil
}

// Note has nothing to say for one who merely waits: nobody can see that.
func (p *place) Note(ctx context.Context, record store.Record) (store.Sight, error) {
	record.Lease = p.length
	p.record = record
	if p.n() > 0 && !record.Taken.IsZero() {
		if err := p.store.put(ctx, p.dir()+"/owner", record.Bytes()); err != nil {
			return store.Sight{}, err
		}
	}
	return p.Look(ctx)
}

// Await lets some time pass: an FTP server tells nobody anything.
func (p *place) Await(ctx context.Context) error {
	timer := time.NewTimer(time.Second + rand.N(time.Second))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return nil
}

func (p *place) Ask(ctx context.Context, _ string, pause time.Duration) error {
	if p.ahead == nil {
		return nil
	}
	err := p.store.put(ctx, p.store.dirOf(p.files, p.ahead.n)+"/ask", []byte(limit.Format(pause)))
	if exit.Code(err) == exit.NotPermitted {
		return nil // it has gone meanwhile
	}
	return err
}

// askedEvery is how often an owner looks whether it is asked to end its job.
const askedEvery = 2 * time.Second

func (p *place) Asked(ctx context.Context) (time.Duration, error) {
	for {
		timer := time.NewTimer(askedEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		case <-timer.C:
		}
		if p.n() == 0 {
			continue
		}
		content, err := p.store.get(ctx, p.dir()+"/ask")
		if isMissing(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return limit.Parse(string(content))
	}
}

// Pass goes past the generation in the way; it stays until the next owner cleans
// up.
func (p *place) Pass(ctx context.Context, _ string, stamp *store.Last) error {
	if p.ahead == nil {
		return nil
	}
	now, err := p.store.inspect(ctx, p.files, p.ahead.n)
	if err != nil || now.released {
		return err
	}
	if stamp != nil {
		if err := p.stamp(ctx, *stamp); err != nil {
			return err
		}
	}
	p.passed[p.ahead.n] = *p.ahead
	return nil
}

func (p *place) stamp(ctx context.Context, stamp store.Last) error {
	return p.store.put(ctx, p.store.in("last."+p.files), stamp.Bytes())
}

// Renew stores the beat anew and then looks for a larger generation: see the
// package comment.
func (p *place) Renew(ctx context.Context) error {
	if p.n() == 0 {
		return nil // a place outside: nothing is held
	}
	if err := p.held(ctx); err != nil {
		return err
	}
	if err := p.beat(ctx); err != nil {
		return err
	}
	return p.held(ctx)
}

// Leave stamps, then marks the generation as released: by a rename, which works
// on a full disk too.
func (p *place) Leave(ctx context.Context, stamp *store.Last) error {
	if p.n() == 0 {
		return nil
	}
	if err := p.held(ctx); err != nil {
		return err
	}
	var failed error
	if stamp != nil {
		failed = p.stamp(ctx, *stamp)
		if exit.Code(failed) == exit.Unavailable {
			return failed
		}
	}
	if err := p.store.rename(ctx, p.dir()+"/owner", p.dir()+"/released"); err != nil && !isMissing(err) {
		return err
	}
	p.own.Store(0)
	return failed
}
