package process

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// hunt follows the members of one job until all are dead.
type hunt struct {
	kin     kin
	fileUID int
	spared  map[int]bool   // this process and its ancestors: where one is a member, nobody is signalled
	inodes  map[key]uint64 // of the pidfds of roots, where the lock recorded them
	orphans bool           // the owner was dead when the hunt began: its bands are all that speaks for them

	// keeper is the subreaper that inherits the job's orphans and is itself
	// signalled last (a supervisor) or never (this process). 0: none.
	keeper key

	unseen  int // a group that has members which the process table does not show; 0: none
	members map[key]*member
	order   []*member // as found: parents before children
	latest  entry     // whom the last scan that found somebody found last
	whole   bool      // at the last scan the owner's group held members only
	growing int       // how many scans in a row found new members
	lonely  time.Time // since when scans have found only the keeper; zero: they find others
}

// member is one process of the job. It stays in the map when dead, so that
// its zombie is not found anew.
type member struct {
	handle
	entry entry
	stage int   // the last stage that has signalled it
	noted bool  // Killer.Record has been told of it
	err   error // why it must not or cannot be signalled
	gone  bool  // death confirmed, handle closed
}

// track finds out whom the hunt is after, or refuses. A hunt without roots and
// bands is over: nothing of the job is left.
func (job Job) track() (*hunt, error) {
	h := newHunt(job.FileUID)
	where, err := here()
	if err != nil {
		return nil, err
	}
	if job.Uncounted {
		return nil, &StuckError{job.Owner.PID, "", ErrUncounted}
	}
	owner, err := h.root(job.Owner)
	if err != nil {
		return nil, err
	}
	h.orphans = owner == key{}
	if job.Supervised {
		h.keeper = owner
	}
	for _, id := range job.recorded() {
		if _, err := h.root(id); err != nil {
			return nil, err
		}
	}
	if job.Owner.seenFrom(where) == samePlace {
		err = h.band(job, where)
	}
	return h, errors.Join(err, h.spare())
}

// band adds the groups and sessions that may have members.
func (h *hunt) band(job Job, where Identity) error {
	for _, b := range job.bands() {
		if !b.session && (b.start == 0 || job.Owner.TimeNS != where.TimeNS) {
			return &StuckError{b.pid, "", ErrUnchecked} // the ages of its members cannot be compared
		}
		h.kin.bands = append(h.kin.bands, b)
		if b.key == (key{job.Owner.PID, job.Owner.Start}) && !b.session {
			h.kin.leader = b.key
		}
	}
	return nil
}

// trackOwn is after what this process has started, and the group it leads.
func trackOwn(group bool) (*hunt, error) {
	h := newHunt(-1)
	self, err := Of(os.Getpid())
	if err != nil {
		return nil, err
	}
	h.keeper = key{self.PID, self.Start}
	h.kin.roots[h.keeper] = true
	if group && self.PGID == self.PID {
		h.kin.leader = h.keeper
		h.kin.bands = []band{{key: h.keeper, within: self.SID}}
	}
	return h, h.spare()
}

func newHunt(fileUID int) *hunt {
	return &hunt{fileUID: fileUID, members: map[key]*member{}, inodes: map[key]uint64{}, kin: kin{roots: map[key]bool{}}}
}

// root adds a recorded process where it lives, and returns its key; the zero key
// where it is dead.
func (h *hunt) root(id Identity) (key, error) {
	switch id.Life() {
	case Unknown:
		return key{}, &StuckError{id.PID, "", ErrUnchecked}
	case Dead:
		return key{}, nil
	}
	if IsAncestor(id.PID) {
		return key{}, ErrAncestor
	}
	if id.PID == 1 {
		return key{}, &StuckError{id.PID, "", unix.EPERM}
	}
	if process := threadOf(id.PID); process != 0 {
		return key{}, &StuckError{id.PID, "", &ThreadError{process}}
	}
	// By the start that it shows here: a time namespace shifts it, and where it is
	// hidden its inode stands for it.
	e, err := find(id.PID)
	if err == unix.ESRCH {
		return key{}, nil
	}
	if err != nil {
		return key{}, named(id.PID, err)
	}
	h.kin.roots[e.key()] = true
	h.inodes[e.key()] = id.Inode
	return e.key(), nil
}

// spare makes sure that whoever must never be signalled is known by now.
func (h *hunt) spare() error {
	if h.over() {
		return nil
	}
	line, err := ancestors()
	if err != nil {
		return fmt.Errorf("ancestors of this process: %w", err)
	}
	line[1] = true
	h.spared = line
	return nil
}

func (h *hunt) over() bool { return len(h.kin.roots) == 0 && len(h.kin.bands) == 0 }

// scan looks for members not known yet. It is true where none is left: none
// lived before the table was read, so that none can have forked meanwhile, and
// none was in it, not even one that was gone before it could be held.
//
// It is ErrAncestor where somebody to be spared is a member: this process was
// started from inside the job, and to end the rest would free the lock while it
// lives.
func (h *hunt) scan() (bool, error) {
	quiet := len(h.living()) == 0
	list, err := h.table()
	if err != nil {
		return false, err
	}
	h.whole = h.kin.whole(list)
	fresh := false
	for _, e := range h.kin.find(list, h.lives) {
		if e.pid == os.Getpid() && h.kin.roots[e.key()] {
			continue // EndDescendants
		}
		if h.spared[e.pid] {
			return false, ErrAncestor
		}
		fresh = fresh || h.members[e.key()] == nil
		h.adopt(e)
		h.latest = e
	}
	living := h.living()
	h.growing = count(h.growing, fresh)
	h.noteLonely(len(living) == 1 && living[0].key == h.keeper)
	return quiet && !fresh && h.unseen == 0, nil
}

// table is the process table, with what this hunt has to know of: recorded
// processes that it does not show are looked up by number.
func (h *hunt) table() ([]entry, error) {
	list, err := table()
	if err != nil {
		return nil, err
	}
	shown := make(map[key]bool, len(list))
	for _, e := range list {
		shown[e.key()] = true
	}
	for k := range h.kin.roots {
		if shown[k] {
			continue
		}
		if e, err := find(k.pid); err == nil && e.key() == k {
			list = append(list, e)
		}
	}
	h.kin.drop(list)
	h.unseen, _ = h.kin.unseen(list)
	return list, nil
}

func count(n int, again bool) int {
	if again {
		return n + 1
	}
	return 0
}

// keeperGrace is how long a supervisor is left to exit by itself once its job is
// gone. It tries for 0.2 s to release the lock that is being taken over; killed
// meanwhile, it would make the shell above it say so, and cron mail that.
const keeperGrace = time.Second

func (h *hunt) noteLonely(lonely bool) {
	switch {
	case !lonely:
		h.lonely = time.Time{}
	case h.lonely.IsZero():
		h.lonely = time.Now()
	}
}

// alone tells that the keeper has outlived its job and its grace.
func (h *hunt) alone() bool { return !h.lonely.IsZero() && time.Since(h.lonely) >= keeperGrace }

// graced tells that only the keeper is left, and still has its grace.
func (h *hunt) graced() bool { return !h.lonely.IsZero() && !h.alone() }

func (h *hunt) lives(k key) bool {
	m := h.members[k]
	return m != nil && !m.gone
}

// adopt makes e a member, or refreshes what is known of it. It is true for a
// new one. One that is gone by now is none.
func (h *hunt) adopt(e entry) bool {
	if m := h.members[e.key()]; m != nil {
		m.entry = e
		return false
	}
	held, err := hold(e.key(), h.inodes[e.key()])
	if errors.Is(err, unix.ESRCH) {
		return false
	}
	m := &member{handle: held, entry: e, err: err}
	if err == nil {
		m.err = h.objection(m)
	}
	h.members[e.key()] = m
	h.order = append(h.order, m)
	return true
}

// identity is what a lock records of the member.
func (m *member) identity() Identity {
	id := Here()
	id.PID, id.PGID, id.SID, id.Inode = m.pid, m.entry.pgid, m.entry.sid, inodeOfPidfd(m.fd)
	if !m.entry.hidden {
		id.Start = m.start
	}
	return id
}

// objection says why a process that was just taken hold of may not be signalled.
func (h *hunt) objection(m *member) error {
	if h.fileUID >= 0 && (h.kin.roots[m.key] || h.orphans && h.kin.inBand(m.entry)) {
		uid, err := user(m.pid)
		if err == nil && uid != h.fileUID {
			err = ErrForeignOwner
		}
		if err != nil {
			return err
		}
	}
	return m.signal(0)
}

// living returns those whose death is not confirmed yet.
func (h *hunt) living() []*member {
	var list []*member
	for _, m := range h.order {
		if !m.gone && m.dead() {
			m.gone = true
			m.close()
		}
		if !m.gone {
			list = append(list, m)
		}
	}
	h.order = list
	return list
}

// await returns once all members are dead, or after d.
func (h *hunt) await(d time.Duration) {
	for end := time.Now().Add(d); ; {
		list := h.living()
		left := time.Until(end)
		if len(list) == 0 || left <= 0 {
			return
		}
		handles := make([]handle, len(list))
		for i, m := range list {
			handles[i] = m.handle
		}
		awaitDeath(handles, left)
		// In a large job each death would wake us to look at all the others.
		time.Sleep(min(left, time.Millisecond/4))
	}
}

// obstacle returns the first living member that may not be signalled.
func (h *hunt) obstacle() error {
	for _, m := range h.living() {
		if m.err != nil {
			return &StuckError{m.pid, m.entry.command, m.err}
		}
	}
	if h.unseen != 0 {
		return &StuckError{-h.unseen, "", ErrUnchecked}
	}
	return nil
}

// stuck names the first who outlived KILL, and why. Where each one dies but
// others keep coming it names one of those.
func (h *hunt) stuck() error {
	if err := h.obstacle(); err != nil {
		return err
	}
	for _, m := range h.living() {
		return &StuckError{m.pid, m.entry.command, ErrAlive}
	}
	return &StuckError{h.latest.pid, h.latest.command, ErrAlive}
}

func (h *hunt) close() {
	for _, m := range h.order {
		m.close()
	}
	h.order = nil
}

// list is the job as it is now, for those who only look.
func (h *hunt) list() ([]Member, error) {
	if h.over() {
		return nil, nil
	}
	all, err := h.table()
	if err != nil {
		return nil, err
	}
	var list []Member
	for _, e := range h.kin.find(all, h.lives) {
		if e.pid == os.Getpid() && h.kin.roots[e.key()] {
			continue
		}
		if h.spared[e.pid] {
			return nil, ErrAncestor
		}
		list = append(list, Member{PID: e.pid, Parent: e.ppid, PGID: e.pgid, Start: e.start, Command: e.command})
	}
	if h.unseen != 0 {
		return list, &StuckError{-h.unseen, "", ErrUnchecked}
	}
	return list, nil
}
