package killer

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/process"
)

type tree struct {
	membership process.Membership
	fileUID    int
	owner      process.Key            // the owner of the lock, if it lives; else zero
	users      map[int]bool           // the users of the recorded processes: a command may have switched its user
	spared     map[int]bool           // pid 1, this process, its ancestors: if one is a member, the job is not ended
	inodes     map[process.Key]uint64 // pidfd inodes that the lock recorded; 0: not recorded
	orphans    bool                   // the owner was dead at the start

	// keeper is the subreaper that inherits the job's orphans. It is signalled last if it is the job's
	// supervisor, and never if it is this process. It is zero if there is none.
	keeper process.Key

	// A process that a member forks after a stage's signals gets those of the next stage, or KILL. It may be a
	// cleanup or a loop's next turn: with the same signal the cleanup would fail, and the loop would spin.
	stage int    // the stage whose signals were sent last; 0: none yet
	since uint64 // process.StartNow of that moment

	unseen  int // a process group with members that the process table does not show; 0: none
	members map[process.Key]*member
	order   []*member     // as found: parents before children
	latest  process.Entry // the member that was found last
	whole   bool          // at the last scan all processes in the owner's group were members
	growing int           // how many scans in a row found new members
	took    time.Duration // how long the last scan took
	lonely  time.Time     // since when scans have found only the keeper; zero: the last scan found others
}

// member is one process of the job. tree.members keeps it after its death, so that its zombie does not count as new.
type member struct {
	process.Handle
	entry process.Entry
	stage int   // the last stage whose signals it got, or skipped because it was forked after them
	noted bool  // Killer.Record has recorded it
	err   error // why it must not or cannot be signalled
	gone  bool  // death confirmed, handle closed
}

// track returns the tree of a job, empty if no process can belong to it, or the reason not to end the job.
func track(job process.Job) (*tree, error) {
	h := newTree(job.FileUID)
	if err := process.Readable(); err != nil {
		return nil, err
	}
	owner, err := h.root(job.Owner)
	if err != nil {
		return nil, err
	}
	h.owner, h.orphans = owner, owner == process.Key{}
	if job.Supervised {
		h.keeper = owner
		if !h.orphans && process.HasMarks && job.Command.Life() == process.Dead {
			job.Command = process.Identity{} // its session may be a stranger's by now; the job's rest descends from the keeper
		}
	}
	for _, id := range job.Recorded() {
		if _, err := h.root(id); err != nil {
			return nil, err
		}
	}
	err = errors.Join(h.membership.AddBands(job), h.spare())
	if err == nil && job.Uncounted && h.membership.Empty() { // members that were not recorded could not be found
		err = &process.StuckError{PID: job.Owner.PID, Err: process.ErrUncounted}
	}
	return h, err
}

// trackOwn returns the tree of this process's descendants and, with group, of the group that it leads.
func trackOwn(group bool) (*tree, error) {
	h := newTree(-1)
	self, err := process.Of(os.Getpid())
	if err != nil {
		return nil, err
	}
	h.keeper = self.Key()
	h.membership.Roots[h.keeper] = true
	if group {
		h.membership.AddGroup(self)
	}
	return h, h.spare()
}

func newTree(fileUID int) *tree {
	return &tree{fileUID: fileUID, members: map[process.Key]*member{}, users: map[int]bool{}, inodes: map[process.Key]uint64{}, membership: process.Membership{Roots: map[process.Key]bool{}}}
}

// find is a variable for a test in which a process ends after this call, and another one gets its pid.
var find = process.Find

// root adds a recorded process to the roots if it lives, and returns its key, or the zero key if it is dead.
// root fails if it cannot tell which, or if the process must not be signalled. It reads the process's data
// before it checks that the process lives: after the check, the pid and the data may be another process's.
func (h *tree) root(id process.Identity) (process.Key, error) {
	e, err := find(id.PID)
	uid, unknown := process.User(id.PID)
	life := id.Life()
	if err != nil && (life == process.Alive || err != unix.ESRCH) {
		return process.Key{}, fault.Worded("process "+strconv.Itoa(id.PID)+": "+err.Error(), err)
	}
	switch life {
	case process.Unknown:
		return process.Key{}, &process.StuckError{PID: id.PID, Err: process.ErrUnchecked}
	case process.Dead:
		return process.Key{}, nil
	}
	if process.IsAncestor(id.PID) {
		return process.Key{}, ErrAncestor
	}
	if id.PID == 1 {
		return process.Key{}, &process.StuckError{PID: id.PID, Err: unix.EPERM}
	}
	if whose := process.ThreadOf(id.PID); whose != 0 {
		return process.Key{}, &process.StuckError{PID: id.PID, Err: &process.ThreadError{Process: whose}}
	}
	// Use the start time that this process reads, not the recorded one: a time namespace shifts start
	// times, and a hidden process has one that is made of its pidfd's inode.
	h.membership.Roots[e.Key()] = true
	h.inodes[e.Key()] = id.Inode
	if unknown == nil {
		h.users[uid] = true
	}
	return e.Key(), nil
}

func (h *tree) spare() error {
	if h.membership.Empty() {
		return nil
	}
	line, err := process.Ancestors()
	if err != nil {
		return fault.Worded("ancestors of this process: "+err.Error(), err)
	}
	h.spared = map[int]bool{1: true}
	for _, pid := range line {
		h.spared[pid] = true
	}
	return nil
}

// scan looks for new members. done is true if no member is left or in doubt: no known member lived when the scan began
// (one could fork while the table is read), and the table shows no new member, not even one that is dead by now.
//
// The error is ErrAncestor if a process to be spared is a member: ending the rest would free the lock while
// that process lives.
func (h *tree) scan() (done bool, err error) {
	defer func(begun time.Time) { h.took = time.Since(begun) }(time.Now())
	quiet := len(h.living()) == 0
	list, err := h.table()
	if err != nil {
		return done, err
	}
	h.whole = h.membership.Whole(list)
	fresh := false
	for _, e := range h.membership.Find(list, h.lives) {
		if e.PID == os.Getpid() && h.membership.Roots[e.Key()] {
			continue // this process ends its descendants, not itself
		}
		if h.spared[e.PID] {
			return done, ErrAncestor
		}
		fresh = fresh || h.members[e.Key()] == nil
		h.adopt(e)
		h.latest = e
	}
	living := h.living()
	if h.growing++; !fresh {
		h.growing = 0
	}
	h.noteLonely(len(living) == 1 && living[0].Key == h.keeper)
	return quiet && !fresh && h.unchecked() == nil, nil
}

// check is scan, but fails for a job that cannot be ended as a whole, which is not touched.
func (h *tree) check() (done bool, err error) {
	if done, err = h.scan(); !done && err == nil {
		err = h.obstacle()
	}
	return done, err
}

var readTable = process.Table

// table reads the process table, drops groups and sessions that have ended, and notes a group of hidden members.
func (h *tree) table() ([]process.Entry, error) {
	list, err := h.membership.Look(h.readTable, h.lives)
	if err != nil {
		return nil, err
	}
	h.membership.Drop(list)
	h.unseen, _ = h.membership.Unseen(list)
	return list, nil
}

// readTable reads the process table, and adds the recorded processes that only a look-up by pid finds.
func (h *tree) readTable(see func(*process.Entry) bool) ([]process.Entry, error) {
	list, err := readTable(see)
	if err != nil {
		return nil, err
	}
	for k := range h.membership.Roots {
		if slices.ContainsFunc(list, func(e process.Entry) bool { return e.Key() == k }) {
			continue
		}
		if e, err := process.Find(k.PID); err == nil && e.Key() == k {
			list = append(list, e)
		}
	}
	return list, nil
}

// keeperGrace is how long a supervisor may take to exit once its job is gone: it tries for 0.2 s to release
// the lock. If it were killed earlier, the shell that started it would report the kill in cron's mail.
const keeperGrace = time.Second

func (h *tree) noteLonely(lonely bool) {
	switch {
	case !lonely:
		h.lonely = time.Time{}
	case h.lonely.IsZero():
		h.lonely = time.Now()
	}
}

// alone reports whether only the keeper has been left for keeperGrace or longer.
func (h *tree) alone() bool { return !h.lonely.IsZero() && time.Since(h.lonely) >= keeperGrace }

// graced reports whether only the keeper is left, but for less than keeperGrace.
func (h *tree) graced() bool { return !h.lonely.IsZero() && !h.alone() }

// keeperIsDue reports whether the keeper should have got KILL by now but has not. On a busy machine one scan may take
// longer than keeperGrace and the last stage together.
func (h *tree) keeperIsDue() bool {
	m := h.members[h.keeper]
	return m != nil && m.err == nil && m.stage < len(stages) && h.alone()
}

func (h *tree) lives(k process.Key) bool {
	m := h.members[k]
	return m != nil && !m.gone
}

// adopt makes the process in e a member, unless it is gone. If it is a member already, adopt only updates its
// entry. It returns true for a new member.
func (h *tree) adopt(e process.Entry) bool {
	if m := h.members[e.Key()]; m != nil {
		m.entry = e
		return false
	}
	held, err := process.Hold(e.Key(), h.inodes[e.Key()])
	if errors.Is(err, unix.ESRCH) {
		return false
	}
	m := &member{Handle: held, entry: e, err: err}
	if err == nil {
		m.err = h.objection(m)
	}
	if h.stage > 0 && e.Start >= h.since {
		m.stage = min(h.stage, len(stages)-1)
	}
	h.members[e.Key()] = m
	h.order = append(h.order, m)
	return true
}

// identity returns what a lock records of the member.
func (m *member) identity() process.Identity {
	id := process.Here()
	id.PID, id.PGID, id.SID, id.Inode = m.PID, m.entry.PGID, m.entry.SID, m.Inode()
	if !m.entry.Hidden {
		id.Start = m.Start
	}
	return id
}

func (h *tree) objection(m *member) error {
	if err := h.foreign(m); err != nil {
		return err
	}
	return m.Signal(0)
}

// foreign returns errForeignOwner if the lock file does not allow signals to the member's user. The owner
// must run as the file's user. After a dead owner, a member that was found only by group, session or mark must
// run as that user or as a recorded process's user. Other members may run as any user (su, setpriv).
func (h *tree) foreign(m *member) error {
	orphan := h.orphans && m.entry.ByBand
	if h.fileUID < 0 || m.Key != h.owner && !orphan {
		return nil
	}
	uid, err := process.User(m.PID)
	if err == nil && uid != h.fileUID && !(orphan && h.users[uid]) {
		err = errForeignOwner
	}
	return err
}

func (h *tree) living() []*member {
	var list []*member
	for _, m := range h.order {
		if !m.gone && m.Exited() {
			m.gone = true
			m.Close()
		}
		if !m.gone {
			list = append(list, m)
		}
	}
	h.order = list
	return list
}

func (h *tree) await(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		list := h.living()
		if len(list) == 0 {
			return
		}
		handles := make([]process.Handle, len(list))
		for i, m := range list {
			handles[i] = m.Handle
		}
		left := time.Until(end)
		process.AwaitDeath(handles, left)
		// Without this pause, each death in a large job would cause a scan of all the others.
		time.Sleep(min(left, time.Millisecond/4))
	}
}

func (h *tree) obstacle() error {
	for _, m := range h.living() {
		if m.err != nil {
			return process.Refused(m.entry, m.err)
		}
	}
	return h.unchecked()
}

// unchecked returns an error if processes that the last scan could not check may belong to the job.
func (h *tree) unchecked() error {
	if h.unseen != 0 {
		return &process.StuckError{PID: -h.unseen, Err: process.ErrUnchecked}
	}
	if doubts := h.membership.Doubts(); len(doubts) > 0 {
		return &process.StuckError{PID: doubts[0].PID, Command: doubts[0].Command, Err: process.ErrUnmarked}
	}
	return nil
}

// stuck returns the error that names a member that could not be signalled or checked, else the first that has
// outlived KILL. If all found members are dead but new ones keep coming, it names the one found last.
func (h *tree) stuck() error {
	if err := h.obstacle(); err != nil {
		return err
	}
	last := h.latest
	for _, m := range h.living() {
		last = m.entry
		if m.Key != h.keeper {
			break // the keeper is named only if no other member is left
		}
	}
	return &process.StuckError{PID: last.PID, Command: last.Command, Err: ErrAlive}
}

func (h *tree) close() {
	for _, m := range h.order {
		m.Close()
	}
	h.order = nil
}

// list returns the living members, parents before children, for callers that send no signal.
func list(h *tree, err error) ([]process.Entry, error) {
	if err != nil || h.membership.Empty() {
		return nil, err
	}
	all, err := h.table()
	if err != nil {
		return nil, err
	}
	var members []process.Entry
	for _, e := range h.membership.Find(all, h.lives) {
		if e.PID == os.Getpid() && h.membership.Roots[e.Key()] {
			continue
		}
		if h.spared[e.PID] {
			return nil, ErrAncestor
		}
		members = append(members, e)
	}
	return members, h.unchecked()
}

// passesOn reports whether m is a supervisor with a living child. Such a supervisor is not signalled before
// KILL: it exits after its job, whose processes are members too.
func (h *tree) passesOn(m *member) bool {
	return m.entry.Supervises() && slices.ContainsFunc(h.order, func(other *member) bool { return other.entry.Parent == m.PID && !other.gone })
}
