package ftp

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// place is what a newcomer has at an atom. A place with a generation of its own owns the atom.
type place struct {
	store  *Store
	name   atom.Name
	record lease.Record

	own    atomic.Int64 // its generation; 0: none yet
	ahead  *generation  // the generation in the way at its last look; nil: none
	passed passed
	above  int                // the largest generation in the way that was removed since the first look; 0: none
	until  time.Duration      // boottime by which the owner of a removed generation has ended its job
	stamps map[int]lease.Last // by the generation of the dead owner that was passed

	recorded bool // its record may be in its generation

	beating sync.Mutex    // held while a heartbeat or the record is written, or a generation is made
	torn    bool          // the record in its generation may be cut short
	since   time.Duration // boottime at which the place came to own the atom
	beat    int           // the number in the last heartbeat
}

// Enter tries to acquire the atom at once. There is no queue: a waiter keeps no other newcomer out.
func (s *Store) Enter(ctx context.Context, name atom.Name, record lease.Record, queue bool) (lease.Place, lease.Snapshot, error) {
	if record.Shared {
		return nil, lease.Snapshot{}, s.notOffered("many readers at once")
	}
	p := &place{store: s, name: name, record: record, passed: passed{}, stamps: map[int]lease.Last{}}
	seen, err := p.Look(ctx)
	if err != nil && p.n() > 0 {
		_ = p.Leave(context.WithoutCancel(ctx), nil) // if this fails, newcomers pass the generation
	}
	if err != nil || seen.Held && !queue {
		return nil, seen, err
	}
	return p, seen, nil
}

func (p *place) Fence() uint64 { return uint64(p.n()) }

func (p *place) InLine() bool { return false }

func (p *place) n() int { return int(p.own.Load()) }

func (p *place) dir() string { return p.store.dirOf(p.name, p.n()) }

func (p *place) beatPath(seconds int) string {
	return p.dir() + "/" + beatFile(seconds, p.record.Token)
}

func (p *place) Look(ctx context.Context) (lease.Snapshot, error) {
	if p.n() > 0 {
		names, err := p.held(ctx)
		if err != nil {
			return lease.Snapshot{}, err
		}
		return p.store.snapshot(ctx, p.name, sight{names: names})
	}
	f, err := p.store.look(ctx, p.name, 0, p.passed)
	if err != nil {
		return lease.Snapshot{}, err
	}
	p.noteRemoval(f.largest(p.name))
	switch {
	case f.ahead == nil && process.Boottime() < p.until:
		f.ahead = &generation{bare: true}
	case f.ahead == nil:
		f, err = p.claim(ctx, max(f.largest(p.name), p.above)+1)
	}
	if err != nil {
		return lease.Snapshot{}, err
	}
	p.ahead = f.ahead
	return p.store.snapshot(ctx, p.name, f)
}

// noteRemoval notes that the generation in the way is gone: this place makes one above it, so that no fence comes twice.
// After its second heartbeat, an owner does not remove its own, and no newcomer removes the largest one: a person has
// done so. Then the atom counts as held for a lease: by then the owner has noticed the removal and ended its job.
func (p *place) noteRemoval(largest int) {
	if g := p.ahead; g != nil && largest < g.n {
		p.above = max(p.above, g.n)
		if g.beat > 1 {
			p.until = process.Boottime() + g.record.Lease
		}
	}
}

// claim makes generation n, stores its record, and then looks at the other generations once more. If one of
// them is in the way after all, claim withdraws, and returns that generation as sight.ahead. Otherwise claim stamps the
// last lock for a dead owner that this place has passed, and removes the lower generations.
func (p *place) claim(ctx context.Context, n int) (sight, error) {
	p.beating.Lock()
	defer p.beating.Unlock()
	err := p.store.do(ctx, func(c *client.ServerConn) error { return c.MakeDir(p.store.dirOf(p.name, n)) })
	if isMissing(err) { // 550 is also the answer if another newcomer was faster
		return p.overtaken(ctx, n, err)
	}
	if err != nil {
		return sight{}, err
	}
	p.own.Store(int64(n))
	f, err := p.enter(ctx)
	if err == nil && f.ahead == nil {
		err = p.stampPassed(ctx, &f)
	}
	if err != nil || f.ahead != nil {
		p.withdraw()
		return f, err
	}
	p.store.held.Store(int64(p.record.Lease))
	p.store.sweep(ctx, f.names)
	for _, g := range f.past { // these generations are released, or their owners are dead
		if g.n < n {
			p.store.removeGeneration(ctx, p.name, g)
		}
	}
	return f, nil
}

// overtaken finds out why the server refused generation n: another newcomer was faster (a generation is ahead
// in the sight), or this user may not make it (the error is refusal, as fault.NotPermitted).
func (p *place) overtaken(ctx context.Context, n int, refusal error) (sight, error) {
	f, err := p.store.look(ctx, p.name, 0, p.passed)
	if err != nil || f.ahead != nil {
		return f, err
	}
	if largest := f.largest(p.name); largest >= n { // that generation is over: report busy, so that the caller looks again
		f.ahead = &generation{n: largest, bare: true}
		return f, nil
	}
	return f, p.store.refused("cannot make "+p.store.dirOf(p.name, n), refusal)
}

func (p *place) enter(ctx context.Context) (sight, error) {
	failed := p.settle(ctx)
	names, err := p.store.list(ctx)
	if err != nil {
		return sight{}, err // this error may be why settle failed
	}
	f := sight{names: names}
	higher := f.largest(p.name) > p.n()
	switch {
	case !higher && !slices.Contains(generations(names, p.name), p.n()):
		return f, p.store.unlisted(p.dir())
	case !higher && failed != nil:
		return f, failed
	case failed == nil:
		f, err = p.store.lookAt(ctx, p.name, names, p.n(), p.passed)
	}
	if err == nil && f.ahead == nil && higher { // a higher generation is in the way, even if its owner is dead
		f.ahead = &generation{n: f.largest(p.name), bare: true}
	}
	return f, err
}

// settle stores the first heartbeat, and then the record. In between it checks whether another
// newcomer has made the same generation: a server that lets two newcomers make one directory cannot
// keep locks. Both store their heartbeats before they look, so at least one finds the other's.
func (p *place) settle(ctx context.Context) error {
	p.since, p.beat, p.recorded = process.Boottime(), 1, false
	own := p.beatPath(p.beat)
	if err := p.store.put(ctx, own, nil); err != nil {
		return err
	}
	files, err := p.store.names(ctx, p.dir())
	if err != nil {
		return err
	}
	if !slices.Contains(files, path.Base(own)) {
		return p.store.unlisted(own)
	}
	for _, file := range files {
		if file == "owner" || file == "released" || file != path.Base(own) && lastBeat([]string{file}) > 0 {
			return p.store.unfit("answers MKD of " + p.dir() + " as if it had made it, and it is another's")
		}
	}
	p.recorded = true
	return p.store.put(ctx, p.dir()+"/owner", p.record.Bytes())
}

// withdraw removes what claim has made. It does not mark the generation as released: the generation
// may be larger than that of the atom's owner, which would then seem to have released. If the files
// cannot be removed, the generation gets no further heartbeat, and newcomers pass it.
func (p *place) withdraw() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*longestWait)
	defer cancel()
	files := []string{path.Base(p.beatPath(p.beat)), "seen"}
	if p.recorded { // otherwise the record may be another newcomer's
		files = append(files, "ask", "owner")
	}
	p.store.removeGeneration(ctx, p.name, generation{n: p.n(), files: files})
	p.own.Store(0)
}

// removeGeneration removes the files of a generation, the record last, and then its directory. It ignores
// errors, as the next owner tries again.
func (s *Store) removeGeneration(ctx context.Context, name atom.Name, g generation) {
	dir := s.dirOf(name, g.n)
	if g.files == nil {
		g.files, _ = s.names(ctx, dir)
	}
	for _, records := range []bool{false, true} {
		for _, file := range g.files {
			if records == (file == "owner" || file == "released") {
				_ = s.remove(ctx, dir+"/"+file)
			}
		}
	}
	_ = s.do(ctx, func(c *client.ServerConn) error { return c.RemoveDir(dir) })
}

// held returns the list of the directory. The error is ErrGone if the list has a larger generation, or if
// this place's own is gone, and fault.Unavailable if the server does not list it although it is there.
func (p *place) held(ctx context.Context) ([]string, error) {
	names, err := p.store.list(ctx)
	if err != nil {
		return nil, err
	}
	list := generations(names, p.name)
	switch {
	case len(list) > 0 && list[0] > p.n():
		return nil, lease.ErrGone
	case slices.Contains(list, p.n()):
		return names, nil
	}
	if _, err = p.store.modified(ctx, p.dir()+"/owner"); isMissing(err) {
		return nil, lease.ErrGone
	} else if err == nil {
		err = fault.New(fault.Unavailable, p.store.String(), "does not list "+p.dir()+", which is there")
	}
	return nil, err
}

// Note writes nothing for a waiter, which other processes cannot see. It first proves that the generation is
// still this place's: in another owner's generation, the record would be taken for that owner's.
func (p *place) Note(ctx context.Context, record lease.Record) error {
	p.beating.Lock()
	defer p.beating.Unlock()
	p.record = record
	if p.n() == 0 || record.Taken.IsZero() {
		return nil
	}
	if err := p.prove(ctx); err != nil {
		return err
	}
	return p.putRecord(ctx)
}

// putRecord replaces the record. After an error the record may be cut short, and restore stores it again.
func (p *place) putRecord(ctx context.Context) error {
	p.record.Held = (process.Boottime() - p.since).Truncate(time.Second)
	err := p.store.replace(ctx, p.dir()+"/owner", p.record.Bytes(), false)
	p.torn = err != nil
	return err
}

// Await lets some time pass: an FTP server sends no events.
func (p *place) Await(ctx context.Context, _ func()) error {
	lease.Pause(ctx, time.Second+rand.N(time.Second))
	return nil
}

func (p *place) Ask(ctx context.Context, _ string, pause time.Duration) (bool, error) {
	if p.ahead == nil {
		return false, nil
	}
	err := p.store.put(ctx, p.store.dirOf(p.name, p.ahead.n)+"/ask", []byte(limit.Format(pause)))
	if fault.KindOf(err) == fault.NotPermitted {
		return false, nil // the owner has gone
	}
	return true, err
}

const askedEvery = 2 * time.Second // how often an owner checks whether it is asked to end its job

// Asked polls the time of the file "ask", as that needs no data connection, and reads the file if it exists.
func (p *place) Asked(ctx context.Context) (time.Duration, error) {
	for lease.Pause(ctx, askedEvery) {
		if p.n() == 0 {
			continue
		}
		_, err := p.store.modified(ctx, p.dir()+"/ask")
		if isMissing(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		content, err := p.store.get(ctx, p.dir()+"/ask")
		if err != nil {
			return 0, err
		}
		return limit.Parse(string(content))
	}
	return 0, ctx.Err()
}

// Pass makes this newcomer ignore the generation in the way, if it has not changed since the last Look. Its files
// stay until the next owner stamps for the dead one and removes them.
func (p *place) Pass(ctx context.Context, _ string, stamp *lease.Last) error {
	if p.ahead == nil {
		return nil
	}
	now, err := p.store.inspect(ctx, p.name, p.ahead.n)
	if err != nil || now.released || !(passed{now.n: *p.ahead}).still(&now) {
		return err
	}
	p.passed[now.n] = now
	delete(p.stamps, now.n)
	if stamp != nil {
		p.stamps[now.n] = *stamp
	}
	return nil
}

// stampPassed stamps for the dead owner that had the atom before this place. Each newcomer passes
// that owner for itself; the newcomer that gets the atom stamps.
func (p *place) stampPassed(ctx context.Context, f *sight) error {
	for _, g := range f.past {
		if stamp, dead := p.stamps[g.n]; dead && p.passed.still(&g) {
			f.names = append(f.names, p.name.LastLock())
			return p.stamp(ctx, stamp)
		}
	}
	return nil
}

// stamp writes the last lock. On a full disk the file is cut short, and its time counts, unless stamp is Kept.
func (p *place) stamp(ctx context.Context, stamp lease.Last) error {
	file := p.store.in(p.name.LastLock())
	err := p.store.replace(ctx, file, stamp.Bytes(), !stamp.Kept)
	if fault.KindOf(err) != fault.IO || stamp.Kept {
		return err
	}
	if age, missing := p.store.ageOf(ctx, file); missing != nil || age > slack {
		return err
	}
	return nil
}

// Renew writes a heartbeat, looks for a larger generation (see the package comment), and restores a removed record.
func (p *place) Renew(ctx context.Context) error {
	p.beating.Lock()
	defer p.beating.Unlock()
	if p.n() == 0 {
		return nil // not an owner yet: nothing is held
	}
	if err := p.prove(ctx); err != nil {
		return err
	}
	return p.restore(ctx)
}

// prove writes a heartbeat. It returns ErrGone if the generation is no longer the largest, or is another owner's.
func (p *place) prove(ctx context.Context) error {
	if err := p.beatAgain(ctx); err != nil {
		return err
	}
	_, err := p.held(ctx)
	return err
}

// beatAgain renames the heartbeat, which works on a full disk too.
func (p *place) beatAgain(ctx context.Context) error {
	next := max(p.beat+1, int((process.Boottime()-p.since)/time.Second))
	err := p.store.rename(ctx, p.beatPath(p.beat), p.beatPath(next))
	if isAnswer(err) {
		next, err = p.beatAnew(ctx, next)
	}
	if err == nil {
		p.beat = next
	}
	return err
}

// beatAnew stores a heartbeat, with a number from next on, if the last cannot be renamed: an answer was lost,
// or the server refuses. It returns the number.
func (p *place) beatAnew(ctx context.Context, next int) (int, error) {
	if _, err := p.held(ctx); err != nil {
		return 0, err
	}
	files, err := p.store.names(ctx, p.dir())
	if err == nil && !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "."+p.record.Token) }) {
		err = p.checkOwner(ctx, files)
	}
	if err != nil {
		return 0, err
	}
	next = max(next, lastBeat(files)+1)
	if err := p.store.put(ctx, p.beatPath(next), nil); err != nil {
		return 0, err
	}
	for _, file := range files {
		if lastBeat([]string{file}) > 0 {
			_ = p.store.remove(ctx, p.dir()+"/"+file) // if this fails, the largest number counts
		}
	}
	return next, nil
}

// checkOwner returns ErrGone if another owner has made this generation again, after a person had removed it.
func (p *place) checkOwner(ctx context.Context, files []string) error {
	if slices.Contains(files, "released") {
		return lease.ErrGone
	}
	file := p.dir() + "/owner"
	content, err := p.store.get(ctx, file)
	if err != nil {
		return p.store.refused("cannot read "+file, err)
	}
	found, err := lease.ParseRecord(file, content)
	if err == nil && found.Token != p.record.Token {
		err = lease.ErrGone
	}
	return err
}

// restore stores the record again if a person has removed it, or if it may be cut short: otherwise newcomers
// would later take the generation for one whose creator never stored a record.
func (p *place) restore(ctx context.Context) error {
	_, err := p.store.modified(ctx, p.dir()+"/owner")
	if isMissing(err) || err == nil && p.torn {
		err = p.putRecord(ctx)
	}
	return err
}

// ClaimTick refuses, as HasTick does.
func (p *place) ClaimTick(ctx context.Context, tick policy.Tick) (bool, error) {
	return p.store.HasTick(ctx, p.name, tick)
}

func (p *place) DisclaimTick(context.Context, policy.Tick) error { return nil } // there is no claim

// Leave proves by a heartbeat that the generation is this place's, stamps, and marks the generation as released.
func (p *place) Leave(ctx context.Context, stamp *lease.Last) error {
	if p.n() == 0 {
		return nil
	}
	p.beating.Lock()
	err := p.prove(ctx)
	p.beating.Unlock()
	if err != nil {
		return err
	}
	if stamp != nil {
		if err := p.stamp(ctx, *stamp); err != nil {
			return err
		}
	}
	if err := p.store.release(ctx, p.dir(), p.record.Bytes()); err != nil && !errors.Is(err, lease.ErrGone) {
		return err
	}
	p.own.Store(0)
	p.store.held.Store(0)
	return nil
}
