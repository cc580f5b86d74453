// Package ftp keeps the locks of atoms on an FTP server, as in Sean Burke's article (2002): MKD is the
// test-and-set. The package adds a record of the owner, a heartbeat, and a takeover from dead owners.
//
// An atom NAME has, in the directory of the address,
//
//	lock.NAME.N/           generation N: the creator of the largest one has the atom,
//	lock.NAME.N/owner      the owner's record,
//	lock.NAME.N/beat.S.T   the owner with token T has had the atom for S seconds, by its own
//	                       clock: it renames this file every third of the lease,
//	lock.NAME.N/ask        a newcomer asks the owner to end its job,
//	lock.NAME.N/seen       a newcomer found no record in this generation,
//	lock.NAME.N/released   the record, once the owner is done;
//	last.NAME              the last lock: its MDTM is when the atom completed, unless Kept is set;
//	clock.NODE             the machine NODE stores this file to read the server's time from its
//	                       MDTM; the content is the machine's boottime then;
//	temp.TOKEN             one of the files owner, last.NAME and clock.NODE before it is in place.
//
// An owner's generation stays while it is the largest; the next owner removes those below. So N only grows,
// which makes it a fencing token, and a newcomer that stalled cannot make a generation again that others have
// passed. Two processes look for each other after they have written (Dekker): an owner stores its record or
// heartbeat, then looks for a larger generation; a newcomer makes a generation, then checks whether an owner
// below has a record after all, or another heartbeat. At least one of the two finds the other and gives up.
//
// An owner is dead once a newcomer has seen the same heartbeat for a whole lease by the newcomer's own
// boottime clock (no heartbeat comes twice). The server's clock is only a hint: if the owner has been silent
// for a lease by that clock, or if that clock shows an impossible time, a newcomer stays and watches, even if
// it does not want to wait. So steps of the server's clock do no harm.
//
// The answers of an FTP server prove little: a server that cannot read its disk also answers with an empty
// list, or 550. So a list of the directory must contain the file that this machine has stored there, and a
// listed file that cannot be read does not mean a free atom. An owner does not begin if its generation or
// first heartbeat is not listed, or if another owner's heartbeat is there: such a server cuts names, has no
// upper case, or makes a directory twice.
//
// FTP does not offer many readers at once, ticks (--once-per), a queue of waiters (they check again every
// second or two), or one step for stamp and release. MDTM counts in seconds.
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
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// Store is one directory of an FTP server.
type Store struct {
	account account
	reads   bool // OnlyRead was called: nothing may be written

	turn    chan struct{} // one command at a time
	session *session      // nil: not logged in
	held    atomic.Int64  // the lease of the atom that is held; 0: none is held

	clockRead  time.Duration // boottime at which the server's clock was read
	serverThen time.Time     // the server's clock then; zero: it was not read

	seen map[string]watch // by the directory of the owner's generation
}

type watch struct {
	token string
	beat  int
	since time.Duration // boottime when this heartbeat was first seen
	lives bool          // another heartbeat was seen before
}

var _ lease.Store = (*Store)(nil)

func (s *Store) String() string { return s.account.address }

func (s *Store) IsSlow() {} // a question takes dozens of commands (lease.Slow)

func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.hangUp()
	return nil
}

func (s *Store) in(names ...string) string {
	return path.Join(append([]string{s.account.dir}, names...)...)
}

// names lists a directory: no names and no error if it is empty or missing, or if the server cannot read it.
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

// list lists the directory of the locks. A list is valid only if it has this machine's clock file. If the file is
// missing, list stores it and lists once more; with OnlyRead, it only checks that the directory is there.
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

func (s *Store) unfit(how string) error {
	return &fault.Error{Kind: fault.Unavailable, Object: s.String(), Err: fmt.Errorf("%s: %w", how, lease.ErrUnfit)}
}

// unlisted returns the error for a file just made that the server does not list, for example because it cuts
// the name: newcomers would not find the file either.
func (s *Store) unlisted(file string) error {
	return s.unfit("does not list " + file + ", which was made")
}

func clockName() (string, error) {
	node, err := lease.NodeName()
	return "clock." + atom.Canonify(node), err
}

// putClock stores this machine's clock file. A full disk is no error (timed). The error is
// fault.NotPermitted if the directory is missing or this user may not write to it.
func (s *Store) putClock(ctx context.Context, clock string) error {
	return s.refused("the directory is not there, or the user may not write to it", timed(s.store(ctx, s.in(clock), clockText())))
}

func (s *Store) put(ctx context.Context, file string, content []byte) error {
	return s.refused("cannot store "+file, s.store(ctx, file, content))
}

func (s *Store) store(ctx context.Context, file string, content []byte) error {
	return s.do(ctx, func(c *client.ServerConn) error { return c.Stor(file, bytes.NewReader(content)) })
}

// replace replaces the content of a file that other processes use. It stores the content under another name and renames
// it: on servers that lock files, a stalled upload would block all others. If the server refuses to rename, replace
// stores the file in place. If the server refuses to store the new content, the file stays unchanged, unless mayCut.
func (s *Store) replace(ctx context.Context, file string, content []byte, mayCut bool) error {
	temporary := s.in(atom.TemporaryName(record.NewToken()))
	stored := s.put(ctx, temporary, content)
	switch {
	case stored != nil && !isAnswer(stored):
		return stored
	case stored != nil && !mayCut:
		_ = s.remove(ctx, temporary) // if this fails, the next owner removes it (sweep)
		return stored
	}
	renamed, err := s.install(ctx, temporary, file, content)
	if renamed {
		return stored
	}
	return err
}

// install renames temporary to file. If the server refuses, install removes temporary, and stores content in file.
func (s *Store) install(ctx context.Context, temporary, file string, content []byte) (renamed bool, err error) {
	if err = s.rename(ctx, temporary, file); err == nil {
		return true, nil
	}
	_ = s.remove(ctx, temporary) // the file may not exist
	if isAnswer(err) {
		err = s.put(ctx, file, content)
	}
	return false, err
}

// sweep removes temporary files older than an hour: interrupted processes have left them.
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

type generation struct {
	n        int
	files    []string
	released bool
	bare     bool // there is no whole record: the creator was cut off, or has not stored it yet
	record   lease.Record
	beat     int           // the number in the last heartbeat; 0: none yet
	age      time.Duration // since its owner came to own the atom; if bare, the age of the mark or of the cut record
	silent   bool          // the owner may be dead (lease.Snapshot)
	lapsed   bool          // no heartbeat for longer than the lease, by this machine's clock: the owner is dead
}

func (s *Store) dirOf(name atom.Name, n int) string { return s.in(name.Generation(n)) }

// generations returns the numbers of the atom's generations among these names, the largest first.
func generations(names []string, name atom.Name) (list []int) {
	for _, dir := range names {
		if f := atom.ParseFile(dir); f.Kind == atom.Generation && f.Name == name {
			list = append(list, f.Number)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return b - a })
	return list
}

const slack = 2 * time.Second // two times in whole seconds that differ by no more than this count as equal

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
		// The record was listed and cannot be read: the generation was just released, or this user may not read the record.
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

// mark stores the file "seen" in a generation without a record. From then on the age of that file is the
// generation's age, and a list that has the file proves that the server could read the directory. mark
// does nothing if the generation has been removed or may not be changed, or with OnlyRead.
func (s *Store) mark(ctx context.Context, dir string) error {
	if s.reads {
		return nil
	}
	return ignoreMissing(s.store(ctx, dir+"/seen", nil))
}

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
	case err != nil && (lease.IsWhole(content) || g.beat > 1 && owned > time.Minute):
		return err // the record is another version's, or its owner has renewed: a job may run under it
	case err != nil: // cut short: no job has begun under this record, or its living owner will store it again (restore)
		g.bare, g.age = true, owned
		return nil
	}
	atBeat := time.Duration(g.beat) * time.Second
	sinceBeat := g.record.Held + owned - atBeat
	g.silent = sinceBeat.Abs() > g.record.Lease+slack
	g.age = atBeat + max(0, min(sinceBeat, g.record.Lease))
	return nil
}

// watch finds out whether the owner in g is dead, or silent. g was read by a look that started at began;
// watch compares it with what earlier looks of this process have read.
func (s *Store) watch(g *generation, dir string, began time.Duration) {
	w, known := s.seen[dir]
	known = known && w.token == g.record.Token
	if !known || w.beat != g.beat {
		w = watch{token: g.record.Token, beat: g.beat, since: process.Boottime(), lives: known}
		s.seen[dir] = w
	}
	g.lapsed = began-w.since > g.record.Lease
	g.silent = g.lapsed || g.silent && !w.lives
}

// beatFile names the heartbeat of an owner that has had the atom for that many seconds. The name has the
// owner's token: if a person has removed a generation and another newcomer has made it again, the earlier
// owner cannot rename the later owner's heartbeat.
func beatFile(seconds int, token string) string {
	return beatWord + strconv.Itoa(seconds) + "." + token
}

const beatWord = "beat."

func lastBeat(files []string) (last int) {
	for _, file := range files {
		if text, is := strings.CutPrefix(file, beatWord); is {
			number, _, _ := strings.Cut(text, ".")
			seconds, _ := strconv.Atoi(number) // 0 if it is not a number
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

type passed map[int]generation

// still reports whether g has not changed since it was passed: it still has no record, or the same heartbeat.
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

type sight struct {
	names []string     // the names in the directory of the locks
	past  []generation // the generations that are not in the way
	ahead *generation  // the largest that is in the way; nil: none
}

func (f *sight) largest(name atom.Name) int {
	if list := generations(f.names, name); len(list) > 0 {
		return list[0]
	}
	return 0
}

// look finds the largest generation that still holds the atom, except own (0: none) and those in past. No
// generation below a released one holds the atom: otherwise the owner of the released one would not have begun.
func (s *Store) look(ctx context.Context, name atom.Name, own int, past passed) (sight, error) {
	names, err := s.list(ctx)
	if err != nil {
		return sight{}, err
	}
	return s.lookAt(ctx, name, names, own, past)
}

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

// Look reads both locks. Unless OnlyRead was called, it may store the clock file, and marks a lock without a record.
func (s *Store) Look(ctx context.Context, name atom.Name, shared bool) (lease.Snapshot, error) {
	if shared {
		return lease.Snapshot{}, s.notOffered("many readers at once")
	}
	f, err := s.look(ctx, name, 0, nil)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return s.snapshot(ctx, name, f)
}

// HasTick refuses, as FTP offers no ticks. So no newcomer gets as far as ClaimTick.
func (s *Store) HasTick(context.Context, atom.Name, policy.Tick) (bool, error) {
	return false, s.notOffered("ticks (--once-per)")
}

func (s *Store) notOffered(what string) error {
	return fault.New(fault.Usage, s.String(), what+" are not offered here")
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

// last reads the last lock. Its time is the file's, by the server's clock: the time in the content is by the
// writer's clock. Only a time kept from an earlier last lock (Kept) is by the server's clock, and counts.
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
		last = lease.Last{} // cut short on a full disk: the time of the file still counts
	}
	if last.Kept {
		return last, nil
	}
	completed, err := s.modified(ctx, file)
	last.MoveTo(completed)
	return last, s.refused("cannot tell the time of "+file, err)
}
