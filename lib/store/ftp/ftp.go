// Package ftp keeps the locks of atoms on an FTP server, as Sean Burke's article
// has it (2002): MKD is the test-and-set. Added is what the article lacks: who
// holds a lock, a heartbeat, ages by the server's clock, a way past the dead.
//
// An atom NAME has, in the directory of the address,
//
//	lock.NAME.N/           generation N: who made the largest one has the atom,
//	lock.NAME.N/owner      its record,
//	lock.NAME.N/beat       stored anew, empty, every third of the lease,
//	lock.NAME.N/ask        somebody asks the owner to end its job,
//	lock.NAME.N/seen       somebody found no record there,
//	lock.NAME.N/released   the record, once the owner is done;
//	last.NAME              the last lock: its MDTM is when the atom completed;
//	clock.NODE             stored anew to ask the server for the time.
//
// The largest generation is never removed, only those below are, by the next
// owner: so N only grows, which makes it a fence, and nobody who stalled can make
// a generation again that others have gone past. Two look at each other after they
// have written (Dekker): an owner stores its record or its beat and then looks for
// a larger generation; a newcomer makes one and then looks whether an owner below
// has a record and a beat after all. At least one sees the other and gives up.
//
// What FTP does not offer: many readers at once, a line of those who wait (they
// look again every second or two), one step for stamp and release. MDTM counts in
// seconds.
package ftp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/textproto"
	"path"
	"sort"
	"strings"
	"sync"
	"time"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/exit"
	"adlock/lib/name"
	"adlock/lib/store"
)

// Store is one directory of an FTP server.
type Store struct {
	account account

	mu   sync.Mutex // one command at a time
	conn *client.ServerConn

	clockRead, serverThen time.Time // when it was read here, what it said there
}

var _ store.Store = (*Store)(nil)

// String is the address without a password.
func (s *Store) String() string { return s.account.address }

// Close hangs up.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp()
	return nil
}

func (s *Store) hangUp() {
	if s.conn != nil {
		go s.conn.Quit() // the server may not answer
		s.conn = nil
	}
}

// do carries out one command, on a connection that is made when it is needed.
// One that takes too long is given up, with its connection: what it asked for
// may still happen.
func (s *Store) do(ctx context.Context, command func(*client.ServerConn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return s.wrap(err)
	}
	if s.conn == nil {
		conn, err := s.account.dial(ctx)
		if err != nil {
			return s.wrap(err)
		}
		s.conn = conn
	}
	conn, done := s.conn, make(chan error, 1)
	go func() { done <- command(conn) }()
	select {
	case err := <-done:
		var answer *textproto.Error
		if err != nil && (!errors.As(err, &answer) || answer.Code == client.StatusNotAvailable) {
			s.hangUp()
		}
		return s.wrap(err)
	case <-ctx.Done():
		s.hangUp()
		return s.wrap(ctx.Err())
	}
}

// wrap gives trouble its status and the address in front.
func (s *Store) wrap(err error) error {
	var known *exit.Error
	var answer *textproto.Error
	switch {
	case err == nil, errors.As(err, &known), isMissing(err):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return exit.New(exit.Unavailable, s.String(), "no answer in time")
	case !errors.As(err, &answer):
		return exit.New(exit.Unavailable, s.String(), err.Error())
	}
	code := exit.Unavailable
	switch answer.Code {
	case client.StatusNotLoggedIn, client.StatusLoginNeedAccount:
		code = exit.NotPermitted
	case client.StatusActionAborted, 452, client.StatusExceededStorage, client.StatusTransfertAborted:
		code = exit.IO // RFC 959: local error, no space, quota
	}
	return exit.New(code, s.String(), strings.TrimSpace(answer.Msg))
}

// isMissing: 550 is all that FTP has to say of a file that is not there, and 553
// what vsftpd says to STOR in a directory that is not there.
func isMissing(err error) bool {
	var answer *textproto.Error
	return errors.As(err, &answer) && (answer.Code == client.StatusFileUnavailable || answer.Code == client.StatusBadFileName)
}

// refused makes a 550 an error of its own, where it does not mean a missing file.
func (s *Store) refused(what string, err error) error {
	if isMissing(err) {
		return exit.New(exit.NotPermitted, s.String(), what+": "+strings.TrimSpace(err.Error()))
	}
	return err
}

func (s *Store) in(names ...string) string {
	return path.Join(append([]string{s.account.dir}, names...)...)
}

// names lists a directory; one that is missing is empty.
func (s *Store) names(ctx context.Context, dir string) (names []string, err error) {
	err = s.do(ctx, func(c *client.ServerConn) error {
		found, err := c.NameList(dir)
		for _, name := range found {
			names = append(names, path.Base(name))
		}
		return err
	})
	if isMissing(err) {
		return nil, nil
	}
	return names, err
}

func (s *Store) put(ctx context.Context, file string, content []byte) error {
	return s.refused("cannot store "+file, s.do(ctx, func(c *client.ServerConn) error { return c.Stor(file, bytes.NewReader(content)) }))
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
	err := s.do(ctx, func(c *client.ServerConn) error { return c.Delete(file) })
	if isMissing(err) {
		return nil
	}
	return err
}

func (s *Store) rename(ctx context.Context, from, to string) error {
	return s.do(ctx, func(c *client.ServerConn) error { return c.Rename(from, to) })
}

// now is the server's clock: a file is stored and asked for its time, once. It is
// one for each machine, and stays.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	if s.clockRead.IsZero() {
		node, err := store.NodeName()
		if err != nil {
			return time.Time{}, err
		}
		file := s.in("clock." + name.Canonify(node))
		if err := s.put(ctx, file, nil); err != nil {
			return time.Time{}, err
		}
		read := time.Now() // after: our idea of the server's now is late, if anything, and nobody dead too early
		at, err := s.modified(ctx, file)
		if err != nil {
			return time.Time{}, s.refused("cannot tell the time of "+file, err)
		}
		s.clockRead, s.serverThen = read, at
	}
	return s.serverThen.Add(time.Since(s.clockRead)), nil
}

// generation is one directory of an atom's lock.
type generation struct {
	n        int
	released bool
	bare     bool // no record: its maker was cut off, or has not come to it
	record   store.Record
	age      time.Duration // of the record; of the mark, where it is bare
	dead     bool          // no beat for longer than its lease
}

const lockPrefix = "lock."

func (s *Store) dirOf(files string, n int) string {
	return s.in(name.OneOf(lockPrefix, files, n))
}

// generations lists those of an atom, the largest first.
func (s *Store) generations(ctx context.Context, files string) ([]int, error) {
	names, err := s.names(ctx, s.account.dir)
	if err != nil {
		return nil, err
	}
	var list []int
	for _, dir := range names {
		if of, n, is := name.NumberOf(lockPrefix, dir); is && of == files {
			list = append(list, n)
		}
	}
	sort.Sort(sort.Reverse(sort.IntSlice(list)))
	return list, nil
}

// slack is what two times in whole seconds may differ by for nothing.
const slack = 2 * time.Second

// inspect says what has become of a generation. A mark is left where there is no
// record: from then on its age can be told.
func (s *Store) inspect(ctx context.Context, files string, n int) (g generation, err error) {
	dir := s.dirOf(files, n)
	names, err := s.names(ctx, dir)
	if err != nil {
		return g, err
	}
	g.n = n
	has := func(name string) bool {
		for _, found := range names {
			if found == name {
				return true
			}
		}
		return false
	}
	if g.released = has("released"); g.released {
		return g, nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return g, err
	}
	if g.bare = !has("owner"); g.bare {
		if !has("seen") {
			return g, s.mark(ctx, dir)
		}
		at, err := s.modified(ctx, dir+"/seen")
		g.age = now.Sub(at)
		return g, err
	}
	return g, s.inspectOwner(ctx, &g, dir, now)
}

// mark is lost on a generation that was removed meanwhile.
func (s *Store) mark(ctx context.Context, dir string) error {
	err := s.do(ctx, func(c *client.ServerConn) error { return c.Stor(dir+"/seen", bytes.NewReader(nil)) })
	if isMissing(err) {
		return nil
	}
	return err
}

func (s *Store) inspectOwner(ctx context.Context, g *generation, dir string, now time.Time) error {
	content, err := s.get(ctx, dir+"/owner")
	if isMissing(err) {
		g.released = true // just now: it was renamed
		return nil
	}
	if err != nil {
		return err
	}
	if g.record, err = store.ParseRecord(dir+"/owner", content); err != nil {
		// Cut off, or on a full disk, before it was whole: nobody runs under it.
		g.bare = true
		at, err := s.modified(ctx, dir+"/owner")
		g.age = now.Sub(at)
		return err
	}
	taken, err := s.modified(ctx, dir+"/owner")
	if err != nil {
		return ignoreMissing(err)
	}
	g.age = now.Sub(taken)
	beat, err := s.modified(ctx, dir+"/beat")
	if isMissing(err) {
		beat, err = taken, nil
	}
	g.dead = now.Sub(beat) > g.record.Lease+slack
	return err
}

func ignoreMissing(err error) error {
	if isMissing(err) {
		return nil
	}
	return err
}

// passed are the generations that somebody has gone past, as they were then.
type passed map[int]generation

// still reports whether nothing has changed since: one without a record has none,
// one without a beat has none either. An owner that had a beat was known to be
// dead from elsewhere.
func (p passed) still(g *generation) bool {
	then, there := p[g.n]
	switch {
	case !there:
		return false
	case then.bare:
		return g.bare
	}
	return !g.bare && g.record.Token == then.record.Token && (g.dead || !then.dead)
}

// inTheWay returns the largest generation that still holds the atom, besides
// those that were passed and one's own; and the number of the largest of all.
func (s *Store) inTheWay(ctx context.Context, files string, own int, past passed) (g *generation, largest int, err error) {
	list, err := s.generations(ctx, files)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range list {
		largest = max(largest, n)
		if n == own {
			continue
		}
		found, err := s.inspect(ctx, files, n)
		if err != nil {
			return nil, 0, err
		}
		if !found.released && !past.still(&found) {
			return &found, largest, nil
		}
	}
	return nil, largest, nil
}

// Look reads both locks. All it may write is the mark on a lock that says nothing.
func (s *Store) Look(ctx context.Context, files string) (store.Sight, error) {
	g, _, err := s.inTheWay(ctx, files, 0, nil)
	if err != nil {
		return store.Sight{}, err
	}
	return s.sight(ctx, files, g)
}

func (s *Store) sight(ctx context.Context, files string, g *generation) (seen store.Sight, err error) {
	if seen.Now, err = s.now(ctx); err != nil {
		return seen, err
	}
	if seen.Last, err = s.last(ctx, files); err != nil {
		return seen, err
	}
	if g != nil {
		seen.Held, seen.Owner, seen.Age, seen.Dead, seen.Bare = true, g.record, g.age, g.dead, g.bare
	}
	return seen, nil
}

// last reads the last lock. What it says of the time is the writer's clock: the
// file's own time is the server's.
func (s *Store) last(ctx context.Context, files string) (store.Last, error) {
	file := s.in("last." + files)
	content, err := s.get(ctx, file)
	if err != nil {
		return store.Last{}, ignoreMissing(err)
	}
	last, err := store.ParseLast(file, content)
	if err != nil {
		last = store.Last{} // cut short on a full disk: the time counts all the same
	}
	last.Completed, err = s.modified(ctx, file)
	return last, err
}
