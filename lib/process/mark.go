package process

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// MarkVariable is the environment variable that shows under which locks a process runs. It has a line for
// each lock (Claim), with the newest lock first. adlock.sh sets it too.
const MarkVariable = "ADLOCK_MARK"

// Claim is a line of MarkVariable: the owner's pid and start, the token, the lock's file. A claim proves nothing:
// a terminal or a daemon that a job has started keeps its claims for ever.
type Claim struct {
	PID   int    // 0: unknown, as in a subshell of ksh93
	Start uint64 // 0: unknown, as in a line that adlock.sh wrote
	Token string
	File  string
	Again bool // the claim is a guarded script's, which its supervisor runs again from the beginning (adlock_guard)
}

// restarted begins the line of a Claim whose field Again is set. adlock.sh removes this word after it has read it.
const restarted = "again "

func (c Claim) line() string {
	return map[bool]string{true: restarted}[c.Again] + strconv.Itoa(c.PID) + ":" + strconv.FormatUint(c.Start, 10) + " " + c.Token + " " + c.File + "\n"
}

// Claims parses MarkVariable in this process's environment. It skips lines that lack a field. A bad number counts as 0.
func Claims() (all []Claim) {
	for line := range strings.Lines(os.Getenv(MarkVariable)) {
		line, again := strings.CutPrefix(strings.TrimSuffix(line, "\n"), restarted)
		if fields := strings.SplitN(line, " ", 3); len(fields) == 3 {
			pid, start, _ := strings.Cut(fields[0], ":")
			c := Claim{Token: fields[1], File: fields[2], Again: again}
			c.PID, _ = strconv.Atoi(pid)
			c.Start, _ = strconv.ParseUint(start, 10, 64)
			all = append(all, c)
		}
	}
	return all
}

// mostMarks bounds the lines of MarkVariable: each daemon that a daemon starts under a lock adds one.
const mostMarks = 32

// AddMark returns MarkVariable as "NAME=value": the line of c, then those of env, at most mostMarks in all.
func AddMark(env []string, c Claim) string {
	marks := c.line()
	lines := 1
	for line := range strings.Lines(marksIn(env)) {
		if lines++; lines > mostMarks {
			break
		}
		marks += line
	}
	return MarkVariable + "=" + marks
}

func marksIn(env []string) string {
	for _, entry := range env {
		if marks, is := strings.CutPrefix(entry, MarkVariable+"="); is {
			return marks
		}
	}
	return ""
}

// mark describes the processes that belong to an owner's job although its lock does not record them (lib/protocol.md,
// 2). They have the token in their environment, or were forked by the owner and have its image. Only processes in the
// owner's session count: one in another session is a daemon, left on purpose.
type mark struct {
	token   string
	image   uint64
	owner   Key
	session int
	since   uint64 // when the lock was taken, or the owner's start if that is later: no process of the job is older
	ageless bool   // another time namespace: starts cannot be compared with since
}

// While a process in the table is in the middle of an execve, the table is read again. The search gives up after at
// least markedLooks readings and the time markedWithin: on a busy machine an execve may take seconds.
const (
	markedLooks  = 10
	markedWithin = 3 * time.Second
)

// The reasons why an environment shows nothing.
var (
	errGone       = errors.New("has ended since the table was read")
	errChanging   = errors.New("does not show its environment now")
	errUnreadable = errors.New("shows no environment to this process")
)

// mark returns the mark of the job. ok is false without HasMarks, a token or the owner's session, and if the
// owner was recorded in another place than where.
func (job Job) mark(where Identity) (m mark, ok bool) {
	if !HasMarks || job.Token == "" || job.Owner.SID == Unrecorded || job.Owner.seenFrom(where) != samePlace {
		return mark{}, false
	}
	return mark{
		token: job.Token, image: job.Owner.Image, owner: job.Owner.Key(), session: job.Owner.SID,
		since: max(startAt(job.Taken), job.Owner.Start), ageless: job.Owner.TimeNS != where.TimeNS,
	}, true
}

type marked struct {
	members map[Key]bool
	doubts  []*Entry // processes that may bear the mark
	changed bool     // a process in doubt is in the middle of an execve, and may show its environment soon
}

// TableReader reads the process table as Table does. It may return processes that Table does not show.
type TableReader func(see func(*Entry) bool) ([]Entry, error)

// look finds the processes that bear the mark, in the table that it returns. While an execve hides an environment,
// look reads the table again (markedWithin), unless reading one took too long. It skips processes that are known.
func (m mark) look(table TableReader, known func(Key) bool) (seen marked, list []Entry, err error) {
	for look, end := 1, time.Now().Add(markedWithin); ; look++ {
		shown := newEnvironments()
		list, err = table(func(e *Entry) bool { return !m.mayBear(*e, known) || !errors.Is(shown.read(*e), errGone) })
		shown.close()
		if err = cmp.Or(err, shown.failed); err != nil {
			return marked{}, nil, err
		}
		if seen = m.find(list, shown.of, known); !seen.changed || shown.late || look >= markedLooks && time.Now().After(end) {
			break
		}
	}
	return seen, list, err
}

func (m mark) mayBear(e Entry, known func(Key) bool) bool {
	return e.SID == m.session && !e.Exited && !e.Hidden && !e.kernel && e.Key() != m.owner && (m.ageless || e.Start >= m.since) && !known(e.Key())
}

// find returns the processes of list that bear or may bear the mark. The token proves that a process is no older
// than the lock. The owner's image, or an unreadable environment (errUnreadable), counts only if isLater is true.
func (m mark) find(list []Entry, shown map[Key]environment, known func(Key) bool) (seen marked) {
	byPID := make(map[int]Entry, len(list))
	for _, e := range list {
		byPID[e.PID] = e
	}
	seen.members = make(map[Key]bool)
	for _, e := range list {
		env := shown[e.Key()]
		switch {
		case !m.mayBear(e, known):
		case m.hasImage(e) && m.ageless:
			seen.doubts = append(seen.doubts, &e)
		case m.isLater(e) && m.hasImage(e) && !m.hasElder(e, byPID), carries(env.text, m.token):
			seen.members[e.Key()] = true
		case errors.Is(env.err, errChanging):
			seen.changed = true
			seen.doubts = append(seen.doubts, &e)
		case m.isLater(e) && errors.Is(env.err, errUnreadable) && m.isOrphan(e, byPID):
			seen.doubts = append(seen.doubts, &e)
		}
	}
	return seen
}

// isLater reports whether e was probably forked after the lock was taken; true if unknown (ageless). In the
// tick of since itself, a pid above the owner's counts as later, and so does one far below (pids wrap around).
func (m mark) isLater(e Entry) bool {
	const wrapped = 1 << 14
	younger := e.PID > m.owner.PID || m.owner.PID-e.PID > wrapped
	return m.ageless || e.Start > m.since || e.Start == m.since && younger
}

func (m mark) hasImage(e Entry) bool { return m.image != 0 && e.image == m.image }

// hasElder reports whether e descends, and not through the owner, from a process that has the owner's image and is
// older than the lock. The owner was then a subshell, and e may be another subshell of the same script.
func (m mark) hasElder(e Entry, byPID map[int]Entry) bool {
	for range len(byPID) {
		above, there := byPID[e.Parent]
		if !there || above.Key() == m.owner {
			return false
		}
		if m.hasImage(above) && !m.isLater(above) {
			return true
		}
		e = above
	}
	return false
}

// isOrphan reports whether e seems to have lost the parent that started it. Its parent is then unknown, pid 1, in
// another session, or a supervisor older than the lock, which adopts orphans as a subreaper.
func (m mark) isOrphan(e Entry, byPID map[int]Entry) bool {
	above, there := byPID[e.Parent]
	return !there || above.PID == 1 || above.SID != e.SID || strings.HasPrefix(above.Command, supervisor) && !m.isLater(above)
}

// supervisor is the prefix of the process names of adlock's subreapers.
const supervisor = "adlock"

func carries(env []byte, token string) bool {
	marks := marksIn(strings.Split(string(env), "\x00"))
	return strings.Contains(marks, " "+token+" ")
}

type environment struct {
	text []byte
	err  error
}

// environmentWithin is how long reading one environment may take. The read waits for a lock on the memory of the
// process, which may hold that lock while a file system does not answer. On a busy machine the thread that reads
// may get no processor for seconds.
var environmentWithin = 10 * time.Second

// environments reads environments in a goroutine of its own. After a read that took too long, it reads no more.
type environments struct {
	of     map[Key]environment
	failed error // the first error that is not errChanging, errUnreadable or errGone
	asked  chan Entry
	given  chan environment // buffered: a late answer does not block the goroutine
	late   bool             // a read took longer than environmentWithin
}

var readEnvironment = environ

func newEnvironments() *environments {
	s := &environments{of: make(map[Key]environment), asked: make(chan Entry), given: make(chan environment, 1)}
	go func() {
		for e := range s.asked {
			text, err := readEnvironment(e)
			s.given <- environment{text, err}
		}
	}()
	return s
}

func (s *environments) close() { close(s.asked) }

func (s *environments) read(e Entry) error {
	env := environment{err: errChanging}
	if !s.late {
		s.asked <- e
		select {
		case env = <-s.given:
		case <-time.After(environmentWithin):
			s.late = true
		}
	}
	switch env.err {
	case nil, errChanging, errUnreadable, errGone:
	default:
		s.failed = cmp.Or(s.failed, env.err)
	}
	s.of[e.Key()] = env
	return env.err
}
