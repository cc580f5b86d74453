// Package ftp keeps the locks of atoms on an FTP server, as Sean Burke's article
// has it (2002): MKD is the test-and-set. Added is what the article lacks: which process
// holds a lock, a heartbeat, a way past the dead.
//
// An atom NAME has, in the directory of the address,
//
//	lock.NAME.N/           generation N: the maker of the largest one has the atom,
//	lock.NAME.N/owner      its record,
//	lock.NAME.N/beat.S.T   the owner of token T has had the atom for S seconds: renamed
//	                       every third of the lease, by its own clock,
//	lock.NAME.N/ask        a newcomer asks the owner to end its job,
//	lock.NAME.N/seen       a newcomer found no record there,
//	lock.NAME.N/released   the record, once the owner is done;
//	tick.NAME.N/           the atom ran in the N-th period since the epoch (--once-per);
//	last.NAME              the last lock: its MDTM is when the atom completed;
//	clock.NODE             stored anew to ask the server for the time; it says when that
//	                       was by the clock of the machine that takes no steps;
//	temp.TOKEN             one of these two before it is in place.
//
// The largest generation is never removed, only those below are, by the next
// owner: so N only grows, which makes it a fence, and no process that stalled can make
// a generation again that others have gone past. Two look at each other after they
// have written (Dekker): an owner stores its record or its beat and then looks for
// a larger generation; a newcomer makes one and then looks whether an owner below
// has a record after all, or another beat. At least one sees the other and gives up.
//
// An owner is dead once a newcomer has seen the same beat, which never comes again, from
// the beginning to the end of a lease by the newcomer's own clock, that of boottime. The
// server's clock is a hint and no more: where it says that the owner has been
// silent for so long, or says what cannot be, a newcomer stays to see, also one that
// does not wait. So it may step as it likes.
//
// What an FTP server says is believed only as far as it goes: an empty list, and
// 550, are also what it says when it cannot look. A list of the directory has to have in
// it what this machine has stored there; what is listed and then not to be read is no
// free atom. An owner does not begin where its generation or first beat is not listed, or
// where another owner's beat is there: the server cuts names, has no upper case, or makes a
// directory twice.
//
// What FTP does not offer: many readers at once, a line of waiters (they
// look again every second or two), one step for stamp and release. MDTM counts in
// seconds.
package ftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/process"
	"adlock/lib/record"
)

// Store is one directory of an FTP server.
type Store struct {
	account account
	reads   bool // nothing may be written

	turn    chan struct{} // one command at a time
	session *session      // nil: none
	held    atomic.Int64  // the lease of the atom that is held; 0: none is

	clockRead, serverThen time.Time // when it was read here, what it said there

	watched map[string]watch // owners that were seen, by their directories
}

// watch is what was seen of an owner.
type watch struct {
	token string
	beat  int
	since time.Duration // boottime by which it had this beat
	lives bool          // it had another one before
}

var _ lease.Store = (*Store)(nil)

// String is the address without a password.
func (s *Store) String() string { return s.account.address }

// Close hangs up.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.hangUp()
	return nil
}

func (s *Store) in(names ...string) string {
	return path.Join(append([]string{s.account.dir}, names...)...)
}

// names lists a directory. None at all may also mean that the server cannot look.
func (s *Store) names(ctx context.Context, dir string) (names []string, err error) {
	err = s.do(ctx, func(c *client.ServerConn) error {
		found, err := c.NameList(dir)
		for _, name := range found {
			names = append(names, path.Base(name))
		}
		return err
	})
	if isMissing(err) || hasCode(err, client.StatusFileActionIgnored) {
		return nil, nil
	}
	return names, err
}

// list lists the directory of the locks. Only a list that has this machine's clock in it
// is one: else the clock is stored, and has to be there then.
func (s *Store) list(ctx context.Context) ([]string, error) {
	clock, err := clockName()
	if err != nil {
		return nil, err
	}
	for range 2 {
		names, err := s.names(ctx, s.account.dir)
		if err != nil || slices.Contains(names, clock) {
			return names, err
		}
		if s.reads {
			return names, s.enterable(ctx)
		}
		if err := s.putClock(ctx, clock); err != nil {
			return nil, err
		}
	}
	return nil, fault.New(fault.Unavailable, s.String(), "does not list "+s.in(clock)+", which is stored there")
}

// unfit is the error where the server does not do what a lock relies on.
func (s *Store) unfit(how string) error {
	return &fault.Error{Kind: fault.Unavailable, Object: s.String(), Err: fmt.Errorf("%s: %w", how, lease.ErrUnfit)}
}

// unlisted is the error where a list lacks what was made: no other newcomer would see it. The
// server may keep it under another name.
func (s *Store) unlisted(file string) error {
	return s.unfit("does not list " + file + ", which was made")
}

func clockName() (string, error) {
	node, err := lease.NodeName()
	return "clock." + atom.Canonify(node), err
}

// putClock stores the first file that is stored there: what a mistyped directory, or
// one that only root writes to, fails at.
func (s *Store) putClock(ctx context.Context, clock string) error {
	return s.refused("the directory is not there, or the user may not write to it", timed(s.store(ctx, s.in(clock), clockText())))
}

func (s *Store) put(ctx context.Context, file string, content []byte) error {
	return s.refused("cannot store "+file, s.store(ctx, file, content))
}

func (s *Store) store(ctx context.Context, file string, content []byte) error {
	return s.do(ctx, func(c *client.ServerConn) error { return c.Stor(file, bytes.NewReader(content)) })
}

// replace puts content in place of a file that others use. It is stored under a name of its
// own and renamed: an upload that stalls would keep all others from the file, as
// some servers lock it. Where that is not to be done it is stored as it is.
func (s *Store) replace(ctx context.Context, file string, content []byte) error {
	temporary := s.in(atom.TemporaryName(record.NewToken()))
	stored := s.put(ctx, temporary, content)
	if stored != nil && !isAnswer(stored) {
		return stored
	}
	renamed, err := s.install(ctx, temporary, file, content)
	if renamed {
		return stored // on a full disk the file is cut short, and is there
	}
	return err
}

// install puts a file that is stored in the place of another, by a rename, or where that is
// not to be done by storing it there.
func (s *Store) install(ctx context.Context, temporary, file string, content []byte) (renamed bool, err error) {
	if err = s.rename(ctx, temporary, file); err == nil {
		return true, nil
	}
	_ = s.remove(ctx, temporary) // it may not have come to be
	if isAnswer(err) {
		err = s.put(ctx, file, content)
	}
	return false, err
}

// sweep removes what replace has left long ago.
func (s *Store) sweep(ctx context.Context, names []string) {
	for _, name := range names {
		if atom.ParseFile(name).Kind != atom.TemporaryFile {
			continue
		}
		if age, err := s.ageOf(ctx, s.in(name)); err == nil && age > time.Hour {
			_ = s.remove(ctx, s.in(name)) // the next owner tries again
		}
	}
}

func (s *Store) get(ctx context.Context, file string) (content []byte, err error) {
	err = s.do(ctx, func(c *client.ServerConn) error {
		response, err := c.Retr(file)
		if err != nil {
			return err
		}
		content, err = io.ReadAll(io.LimitReader(response, 64<<10))
		return errors.Join(err, response.Close())
	})
	return content, err
}

func (s *Store) modified(ctx context.Context, file string) (at time.Time, err error) {
	err = s.do(ctx, func(c *client.ServerConn) error {
		at, err = c.GetTime(file)
		return err
	})
	return at, err
}

func (s *Store) remove(ctx context.Context, file string) error {
	return ignoreMissing(s.do(ctx, func(c *client.ServerConn) error { return c.Delete(file) }))
}

func (s *Store) rename(ctx context.Context, from, to string) error {
	return s.do(ctx, func(c *client.ServerConn) error { return c.Rename(from, to) })
}

// generation is one directory of an atom's lock.
type generation struct {
	n        int
	files    []string // what is in it
	released bool
	bare     bool // no record: its maker was cut off, or has not come to it
	record   lease.Record
	beat     int           // the last one; 0: none yet
	age      time.Duration // since it came to own the atom; of the mark, where it is bare
	silent   bool          // for longer than its lease, or so the server's clock says
	lapsed   bool          // for longer than its lease, as was seen from here
}

func (s *Store) dirOf(name atom.Name, n int) string { return s.in(name.Generation(n)) }

// generations are those of an atom in a list, the largest first.
func generations(names []string, name atom.Name) (list []int) {
	for _, dir := range names {
		if f := atom.ParseFile(dir); f.Kind == atom.Generation && f.Name == name {
			list = append(list, f.Number)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return b - a })
	return list
}

// slack is what two times in whole seconds may differ by for nothing.
const slack = 2 * time.Second

// inspect says what has become of a generation.
func (s *Store) inspect(ctx context.Context, name atom.Name, n int) (g generation, err error) {
	for range 2 {
		began := process.Boottime()
		g, err = s.inspectOnce(ctx, s.dirOf(name, n))
		g.n = n
		if err == nil && !g.released && !g.bare {
			s.watch(&g, s.dirOf(name, n), began)
		}
		if !isMissing(err) {
			return g, err
		}
		// The record was there, and is not to be read: it was released just now, or we
		// may not read it.
	}
	return g, s.refused("cannot read "+s.dirOf(name, n)+"/owner", err)
}

func (s *Store) inspectOnce(ctx context.Context, dir string) (g generation, err error) {
	if g.files, err = s.names(ctx, dir); err != nil {
		return g, err
	}
	g.beat = lastBeat(g.files)
	switch {
	case slices.Contains(g.files, "released"):
		g.released = true
		return g, nil
	case slices.Contains(g.files, "owner"):
		return g, s.inspectOwner(ctx, &g, dir)
	}
	g.bare = true
	if !slices.Contains(g.files, "seen") {
		return g, s.mark(ctx, dir)
	}
	g.age, err = s.ageOf(ctx, dir+"/seen")
	return g, err
}

// mark leaves, unless nothing may be written, a mark where there is no record: from then on its age can be told, and that
// the list of what is there is a true one. It is lost on a generation that was removed
// meanwhile, or that others may not change.
func (s *Store) mark(ctx context.Context, dir string) error {
	if s.reads {
		return nil
	}
	return ignoreMissing(s.do(ctx, func(c *client.ServerConn) error { return c.Stor(dir+"/seen", bytes.NewReader(nil)) }))
}

// ageOf is how old a file is, by the server's clock.
func (s *Store) ageOf(ctx context.Context, file string) (time.Duration, error) {
	now, err := s.now(ctx)
	if err != nil {
		return 0, err
	}
	at, err := s.modified(ctx, file)
	return now.Sub(at), err
}

func (s *Store) inspectOwner(ctx context.Context, g *generation, dir string) error {
	content, err := s.get(ctx, dir+"/owner")
	if err != nil {
		return err
	}
	owned, err := s.ageOf(ctx, dir+"/owner")
	if err != nil {
		return err
	}
	g.record, err = lease.ParseRecord(dir+"/owner", content)
	switch {
	case err != nil && lease.IsWhole(content):
		return err
	case err != nil: // cut off, or on a full disk: no job runs under it
		g.bare, g.age = true, owned
		return nil
	}
	told := time.Duration(g.beat) * time.Second
	unheard := owned - told
	g.silent = unheard.Abs() > g.record.Lease+slack
	g.age = told + max(0, min(unheard, g.record.Lease))
	return nil
}

// watch compares what a look at an owner, which began then, has found with the looks before.
func (s *Store) watch(g *generation, dir string, began time.Duration) {
	w, known := s.watched[dir]
	known = known && w.token == g.record.Token
	if !known || w.beat != g.beat {
		w = watch{token: g.record.Token, beat: g.beat, since: process.Boottime(), lives: known}
		s.watched[dir] = w
	}
	g.lapsed = began-w.since > g.record.Lease
	g.silent = g.lapsed || g.silent && !w.lives
}

// beatFile names the beat of an owner that has had the atom for so many seconds. No process
// renames another's, where a person has removed a generation that was then made again.
func beatFile(seconds int, token string) string {
	return beatWord + strconv.Itoa(seconds) + "." + token
}

const beatWord = "beat."

func lastBeat(files []string) (last int) {
	for _, file := range files {
		if text, is := strings.CutPrefix(file, beatWord); is {
			number, _, _ := strings.Cut(text, ".")
			seconds, _ := strconv.Atoi(number) // of another's file it is 0
			last = max(last, seconds)
		}
	}
	return last
}

func ignoreMissing(err error) error {
	if isMissing(err) {
		return nil
	}
	return err
}

// passed are the generations that newcomers have gone past, as they were then.
type passed map[int]generation

// still reports whether nothing has changed since: one without a record has none,
// and an owner has not come to another beat.
func (p passed) still(g *generation) bool {
	then, there := p[g.n]
	switch {
	case !there:
		return false
	case then.bare:
		return g.bare
	}
	return !g.bare && g.record.Token == then.record.Token && g.beat == then.beat
}

// sight is what one look has found.
type sight struct {
	names []string     // in the directory of the locks
	past  []generation // those that are not in the way
	ahead *generation  // the largest that is; nil: none
}

func (f *sight) largest(name atom.Name) int {
	if list := generations(f.names, name); len(list) > 0 {
		return list[0]
	}
	return 0
}

// look looks for the largest generation that still holds the atom, besides those that
// were passed and one's own. Below one that was released there is none: its owner has
// made sure of that.
func (s *Store) look(ctx context.Context, name atom.Name, own int, past passed) (sight, error) {
	names, err := s.list(ctx)
	if err != nil {
		return sight{}, err
	}
	return s.lookAt(ctx, name, names, own, past)
}

// lookAt is look where the directory was listed just now.
func (s *Store) lookAt(ctx context.Context, name atom.Name, names []string, own int, past passed) (f sight, err error) {
	f.names = names
	released := false
	for _, n := range generations(f.names, name) {
		if n == own {
			continue
		}
		if released {
			f.past = append(f.past, generation{n: n})
			continue
		}
		g, err := s.inspect(ctx, name, n)
		if err != nil {
			return f, err
		}
		released = g.released
		if !g.released && !past.still(&g) {
			f.ahead = &g
			return f, nil
		}
		f.past = append(f.past, g)
	}
	return f, nil
}

// Look reads both locks. All it may write is the mark on a lock that says nothing.
func (s *Store) Look(ctx context.Context, name atom.Name, shared bool) (lease.Snapshot, error) {
	if err := s.refuseReader(shared); err != nil {
		return lease.Snapshot{}, err
	}
	f, err := s.look(ctx, name, 0, nil)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return s.snapshot(ctx, name, f)
}

// refuseReader is the error where a reader asks.
func (s *Store) refuseReader(shared bool) error {
	if shared {
		return fault.New(fault.Usage, s.String(), lease.ErrShared.Error())
	}
	return nil
}

func (s *Store) snapshot(ctx context.Context, name atom.Name, f sight) (seen lease.Snapshot, err error) {
	if seen.Now, err = s.now(ctx); err != nil {
		return seen, err
	}
	if seen.Last, err = s.last(ctx, name, f.names); err != nil {
		return seen, err
	}
	if g := f.ahead; g != nil {
		seen.Held, seen.Owner, seen.Age, seen.Bare = true, g.record, g.age, g.bare
		seen.Lapsed, seen.Silent = g.lapsed, g.silent
	}
	return seen, nil
}

// last reads the last lock. What it says of the time is the writer's clock: the
// file's own time is the server's. What was kept of one before is by that.
func (s *Store) last(ctx context.Context, name atom.Name, names []string) (lease.Last, error) {
	if !slices.Contains(names, name.LastLock()) {
		return lease.Last{}, nil
	}
	file := s.in(name.LastLock())
	content, err := s.get(ctx, file)
	if err != nil {
		return lease.Last{}, s.refused("cannot read "+file, err)
	}
	last, err := lease.ParseLast(file, content)
	if err != nil {
		last = lease.Last{} // cut short on a full disk: the time counts all the same
	}
	if last.Kept {
		return last, nil
	}
	completed, err := s.modified(ctx, file)
	last.MoveTo(completed)
	return last, s.refused("cannot tell the time of "+file, err)
}
