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
	orphans bool // the owner was dead when the hunt began: its group is all that speaks for them

	// keeper is the subreaper that inherits the job's orphans and is itself
	// signalled last (a supervisor) or never (this process). 0: none.
	keeper key

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
	err   error // why it must not or cannot be signalled
	gone  bool  // death confirmed, handle closed
}

// track finds out whom the hunt is after, or refuses. A hunt without roots and
// leader is over: nothing of the job is left.
func (job Job) track() (*hunt, error) {
	h := newHunt(job.FileUID)
	where, err := here()
	if err != nil {
		return nil, err
	}
	for _, id := range append([]Identity{job.Owner}, job.Also...) {
		if err := h.root(id); err != nil {
			return nil, err
		}
	}
	owner := key{job.Owner.PID, job.Owner.Start}
	h.orphans = !h.kin.roots[owner]
	if job.Supervised && !h.orphans {
		h.keeper = owner
	}
	if job.Owner.leads() && job.Owner.seenFrom(where) == samePlace && unix.Kill(-owner.pid, 0) != unix.ESRCH {
		if owner.start == 0 || job.Owner.TimeNS != where.TimeNS {
			return nil, &StuckError{owner.pid, "", ErrUnchecked} // a group whose members' ages cannot be compared
		}
		h.kin.leader = owner
	}
	return h, h.spare()
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
	if group && self.leads() {
		h.kin.leader = h.keeper
	}
	return h, h.spare()
}

func newHunt(fileUID int) *hunt {
	return &hunt{fileUID: fileUID, members: map[key]*member{}, kin: kin{roots: map[key]bool{}}}
}

// root adds a recorded process where it lives.
func (h *hunt) root(id Identity) error {
	switch id.Life() {
	case Unknown:
		return &StuckError{id.PID, "", ErrUnchecked}
	case Dead:
		return nil
	}
	if IsAncestor(id.PID) {
		return ErrAncestor
	}
	if id.PID == 1 {
		return &StuckError{id.PID, "", unix.EPERM}
	}
	h.kin.roots[key{id.PID, id.Start}] = true
	return nil
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
	h.kin.spared = line
	return nil
}

func (h *hunt) over() bool { return len(h.kin.roots) == 0 && h.kin.leader == key{} }

// scan looks for members not known yet. It is true where none is left: none
// lived before the table was read, so that none can have forked meanwhile, and
// none was in it, not even one that was gone before it could be held.
func (h *hunt) scan() (bool, error) {
	quiet := len(h.living()) == 0
	list, err := table()
	if err != nil {
		return false, err
	}
	if h.kin.ended(list) {
		h.kin.leader = key{}
	}
	h.whole = h.kin.whole(list)
	fresh := false
	for _, e := range h.kin.find(list, h.lives) {
		if h.kin.spared[e.pid] {
			continue
		}
		fresh = fresh || h.members[e.key()] == nil
		h.adopt(e)
		h.latest = e
	}
	living := h.living()
	h.growing = count(h.growing, fresh)
	h.noteLonely(len(living) == 1 && living[0].key == h.keeper)
	return quiet && !fresh, nil
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
	held, err := hold(e.key())
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

// objection says why a process that was just taken hold of may not be signalled.
func (h *hunt) objection(m *member) error {
	if h.fileUID >= 0 && (h.kin.roots[m.key] || h.orphans && h.kin.inGroup(m.entry)) {
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
	all, err := table()
	if err != nil {
		return nil, err
	}
	if h.kin.ended(all) {
		h.kin.leader = key{}
	}
	var list []Member
	for _, e := range h.kin.find(all, h.lives) {
		if !h.kin.spared[e.pid] {
			list = append(list, Member{PID: e.pid, Parent: e.ppid, PGID: e.pgid, Start: e.start, Command: e.command})
		}
	}
	return list, nil
}
