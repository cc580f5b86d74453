package main

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

func (q *query) allUsersOption() config.Option {
	return config.Option{
		Name: "all-users", Set: config.Toggle(&q.allUsers),
		Help: "of all users of this machine, each read with that user's rights; for root",
	}
}

type account struct {
	user string // "": --all-users was not asked for
	uid  int
	path string // of another user's lock directory

	entries []locker.Entry
	host    policy.Pause // the host's pause, which atoms without an entry have too
	slots   []locker.Slot
	events  iter.Seq2[runlog.Event, error]

	chosen choice // the atoms that the query selects

	seen     []runlog.Event // the events of another user; nil: the user is this process's, whose runlog may be read again
	omitted  int            // atoms that were not read, or are not shown
	troubles []error        // errors about what could not be read

	unread  bool      // a runlog could not be read
	damaged int       // damaged lines of the user's runlog
	begins  time.Time // from then on, all the user's runlogs were read; zero: each was read whole

	alive func() bool // returns false once the time to read is up (doAs); nil: the directory is this user's own
}

func (a *account) goesOn() bool { return a.alive == nil || a.alive() }

// These bound what is read of another user's directory, and how many users are read at a time.
const (
	mostNames   = 10000   // files, of any kind
	mostAtoms   = 1000    // atoms that are read, or shown
	mostHosts   = 8       // runlogs
	mostRunlog  = 4 << 20 // bytes, at the ends of all runlogs: some 10,000 lines
	mostDamaged = 1000    // damaged lines of all runlogs
	atOnce      = 8       // users
)

var (
	passwdFile, groupFile = "/etc/passwd", "/etc/group"

	patience = readingLimits{Silence: time.Second, Whole: 1500 * time.Millisecond}
)

// silent has, by uid, the error of each user whose directory did not answer. That directory is not to be read again.
var silent = map[int]error{}

type answer[T any] struct {
	user     string
	value    T       // its zero value if the lock directory could not be read
	there    bool    // there is a lock directory
	whole    bool    // the query is the whole name of one of the user's atoms
	troubles []error // errors about what could not be read
}

// everyone calls see for root and for each user of this machine with a lock directory, with that user's rights, and for
// several users at once. see's value is used even if see also returns an error. everyone returns the last error and
// prints the others; with --watch it returns all, and with --output it ignores those of other users. all is nil if no
// user could be read. If the query is the whole name of an atom, all has only the users of such an atom. It also has
// users without a lock directory whom q.remembers.
func everyone[T any](q *query, see func(*account) (T, error)) (all []answer[T], err error) {
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.NotPermitted, "--all-users", "reads the lock directories of other users, and is for root")
	}
	if store() != "" {
		return nil, fault.New(fault.Usage, "--all-users", "is for lock directories, and ADLOCK_STORE names "+store())
	}
	users, err := others()
	if err != nil {
		return nil, err
	}
	host := hostPause()
	seeChosen := func(a *account) (T, error) {
		a.host = host
		pauseAll(a.entries, host)
		a.chosen = q.choose(a.entries, a.events)
		return see(a)
	}
	process.Here() // reads the ids of this machine now, with root's rights: they are read only once
	rooms, answers := make(chan struct{}, atOnce), make([]chan answer[T], len(users))
	for i := range users {
		answers[i] = make(chan answer[T], 1)
		if err := silent[users[i].UID]; err != nil {
			answers[i] <- answer[T]{there: true, troubles: []error{err}}
			continue
		}
		go func() {
			rooms <- struct{}{}
			answers[i] <- visit(users[i], seeChosen)
			<-rooms
		}()
	}
	own := ownAccount(seeChosen)
	var failed failures
	collect := func(u otherUser, a answer[T]) {
		if a.user = u.Name; a.there || q.remembers != nil && q.remembers(u.Name) {
			all = append(all, a)
		}
		for _, err := range a.troubles {
			if errors.Is(err, errSilent) {
				silent[u.UID] = err
			}
			if q.watch { // status clears the screen before it reports failed
				failed.last = errors.Join(failed.last, err)
			} else if q.output == "" || u.UID == 0 { // otherwise the metrics report it (tellMetricsOfAll)
				failed.add(err)
			}
		}
	}
	collect(otherUser{Name: sysfile.UserName(0)}, own)
	for i, u := range users {
		collect(u, <-answers[i])
	}
	if slices.ContainsFunc(all, func(a answer[T]) bool { return a.whole }) {
		all = slices.DeleteFunc(all, func(a answer[T]) bool { return !a.whole })
	}
	return all, failed.last
}

// others returns the users of this machine, except root, who may have a lock directory; nil if the caller is not root.
func others() ([]otherUser, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	users, err := usersIn(passwdFile, groupFile)
	if err != nil {
		return nil, fault.Wrap(passwdFile, err)
	}
	users = slices.DeleteFunc(users, func(u otherUser) bool { return u.UID == 0 || u.Name == "" })
	for _, uid := range config.UsersWithDir() {
		if !slices.ContainsFunc(users, func(u otherUser) bool { return u.UID == uid }) {
			users = append(users, otherUser{Name: strconv.Itoa(uid), UID: uid, GID: nogroup})
		}
	}
	return users, nil
}

func userCalled(users []otherUser, name string) *otherUser {
	i := slices.IndexFunc(users, func(u otherUser) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return &users[i]
}

// spent is how much time asUser has taken for each user, by uid.
var spent = map[int]time.Duration{}

// asUser calls do, which examines files, with the rights of that user. If name is root or "", or this process is not
// root's, do keeps this process's rights. asUser returns false if passwd(5) lacks the user or the files do not answer.
type asUser func(name string, do func() bool) bool

func userTest() (asUser, error) {
	users, err := others()
	return withRightsOf(users), err
}

// withRightsOf returns an asUser for these users. patience.Whole bounds the time of all calls for one user together.
func withRightsOf(users []otherUser) asUser {
	return func(name string, do func() bool) bool {
		name = withoutGroup(name)
		u := userCalled(users, name)
		switch known := lookUp(name); {
		case name == "", known != nil && known.Uid == "0", os.Geteuid() != 0:
			return do()
		case u == nil: // a user of a directory service, whose rights are not known here
			return false
		case silent[u.UID] != nil:
			return false
		}
		began := time.Now()
		is, err := doAs(*u, patience, func(func() bool) (bool, error) { return do(), nil })
		if spent[u.UID] += time.Since(began); err == nil && spent[u.UID] >= patience.Whole {
			err = errSilent
		}
		if err != nil {
			reportUnread(*u, fault.Wrap(name, err))
		}
		return is
	}
}

func rememberedOfUser[A any](look func(name, of string) A) func(name, of string) A {
	known := remembered(func(q [2]string) A { return look(q[0], q[1]) })
	return func(name, of string) A { return known([2]string{name, of}) }
}

func remembered[Q comparable, A any](look func(Q) A) func(Q) A {
	known := map[Q]A{}
	return func(q Q) A {
		a, is := known[q]
		if !is {
			a = look(q)
			known[q] = a
		}
		return a
	}
}

// reportUnread reports err, and remembers the user as silent if the directory did not answer.
func reportUnread(u otherUser, err error) {
	fault.Report(err)
	if errors.Is(err, errSilent) {
		silent[u.UID] = err
	}
}

// nogroup stands for the group of a user that is not in passwd(5): that group has no rights.
const nogroup = 65534

func ownAccount[T any](see func(*account) (T, error)) answer[T] {
	a := &account{user: sysfile.UserName(0)}
	dir, err := config.RunlogDir()
	if err == nil {
		a.events = history.Read(dir)
		a.entries, a.slots, err = inDirectory()
	}
	if err != nil {
		return answer[T]{there: true, troubles: []error{err}}
	}
	value, err := see(a)
	a.fail(fault.Wrap(dir, err))
	return answer[T]{value: value, there: true, whole: a.chosen.whole, troubles: a.troubles}
}

func visit[T any](u otherUser, see func(*account) (T, error)) answer[T] {
	at := make(chan string, 1) // gets the path of the directory
	found, err := doAs(u, patience, func(alive func() bool) (answer[T], error) {
		base, names := whereabouts(u)
		if base == "" {
			return answer[T]{}, nil
		}
		path := filepath.Join(append([]string{base}, names...)...)
		at <- path
		fd, err := openBelow(base, names...)
		if errors.Is(err, fs.ErrNotExist) || err != nil && path != config.UserDir(u.UID) && !isUsersHome(base, u) {
			return answer[T]{}, nil
		}
		if err != nil {
			return answer[T]{}, fault.Wrap(path, err)
		}
		defer unix.Close(fd)
		a := &account{user: u.Name, uid: u.UID, path: path, alive: alive}
		if err := a.read(fd, path); err != nil {
			return answer[T]{}, err
		}
		value, err := see(a)
		a.fail(err)
		if a.omitted > 0 {
			a.fail(fault.New(fault.Unavailable, path, strconv.Itoa(a.omitted)+" atoms are left out: there are too many, or it took too long"))
		}
		return answer[T]{value: value, there: true, whole: a.chosen.whole, troubles: a.troubles}, nil
	})
	if err != nil {
		if errors.Is(err, errSilent) {
			path := config.UserDir(u.UID) // whereabouts checks this directory first
			select {
			case path = <-at:
			default:
			}
			err = &fault.Error{Kind: fault.Unavailable, Object: path, Err: err}
		}
		return answer[T]{there: true, troubles: []error{err}}
	}
	return found
}

// whereabouts returns where the user's lock directory is: the names lead down to it from the directory base.
// Each name must be opened by itself, as the user may have put a symbolic link there. base is "" if the user can
// have no lock directory.
func whereabouts(u otherUser) (base string, names []string) {
	if dir := config.UserDir(u.UID); config.IsUsers(dir, u.UID) {
		return filepath.Dir(dir), []string{filepath.Base(dir)}
	}
	if u.Home == "" {
		return "", nil
	}
	return u.Home, strings.Split(config.DirOfHome(""), "/")
}

// isUsersHome is false if base belongs to another user: the home of many service users (bin, daemon) is root's.
func isUsersHome(base string, u otherUser) bool {
	var st unix.Stat_t
	return unix.Stat(base, &st) != nil || int(st.Uid) == u.UID
}

func (a *account) fail(err error) {
	if err != nil {
		a.troubles = append(a.troubles, err)
	}
}

// read reads the lock directory, open as fd. It returns an error only if there is nothing to show.
func (a *account) read(fd int, path string) error {
	names, more, err := namesIn(fd, mostNames)
	if err != nil {
		return fault.Wrap(path, err)
	}
	if more {
		a.fail(fault.New(fault.Unavailable, path, "has more than "+strconv.Itoa(mostNames)+" files, and not all were read"))
	}
	names, a.omitted = firstAtoms(names)
	dir, err := lockfile.OfUser(fd, path, &lockfile.Visit{UID: a.uid, Names: names, Alive: a.alive})
	if err != nil {
		return err
	}
	if a.entries, a.slots, err = listed(dir); err != nil {
		return err
	}
	all := len(a.entries)
	a.entries = slices.DeleteFunc(a.entries, func(e locker.Entry) bool { return errors.Is(e.Err, lockfile.ErrNoMore) })
	a.omitted += all - len(a.entries)
	a.own()
	a.readRunlog(fd, path, runlog.HostsOf(names))
	return nil
}

func firstAtoms(names []string) (kept []string, omitted int) {
	var atoms []atom.Name
	for _, name := range names {
		if f := atom.ParseFile(name); !f.Name.IsSlot() && (f.Kind == atom.ActiveLock || f.Kind == atom.LastLock) {
			atoms = append(atoms, f.Name)
		}
	}
	slices.Sort(atoms)
	atoms = slices.Compact(atoms)
	if len(atoms) <= mostAtoms {
		return names, 0
	}
	end := atoms[mostAtoms]
	kept = slices.DeleteFunc(names, func(name string) bool {
		f := atom.ParseFile(name)
		return f.Name >= end && !f.Name.IsSlot()
	})
	return kept, len(atoms) - mostAtoms
}

func (a *account) own() {
	set := func(v *locker.View) { v.Record.Owner.UID, v.Whose = a.uid, a.uid }
	for i := range a.entries {
		set(&a.entries[i].View)
		for j := range a.entries[i].Readers {
			set(&a.entries[i].Readers[j])
		}
	}
	for i := range a.slots {
		set(&a.slots[i].View)
	}
}

// readRunlog opens the runlogs through the directory fd, so that the user cannot redirect it by moving a directory.
func (a *account) readRunlog(fd int, path string, hosts []string) {
	through := "/proc/self/fd/" + strconv.Itoa(fd)
	a.seen = []runlog.Event{}
	if len(hosts) > mostHosts {
		a.fail(fault.New(fault.Unavailable, path, "has more than "+strconv.Itoa(mostHosts)+" runlogs, and not all were read"))
		hosts = hosts[:mostHosts]
	}
	for e, err := range history.ReadEnd(through, hosts, mostRunlog/int64(max(1, len(hosts)))) {
		var line *runlog.DamagedLine
		switch {
		case errors.As(err, &line):
			a.damaged++
		case errors.Is(err, runlog.ErrCut):
			if e.Time.After(a.begins) {
				a.begins = e.Time
			}
		case err != nil:
			a.unread = true
			a.fail(fault.Wrap(path, renamed(err, through, path)))
		default:
			a.seen = append(a.seen, e)
		}
		if a.damaged > mostDamaged || !a.alive() {
			a.fail(fault.New(fault.Unavailable, path, "the runlog was not read to its end"))
			break
		}
	}
	a.events = all(a.seen)
}

// tellCut adds an error to troubles if events after since were left out, as only the end of a large runlog was read.
func (a *account) tellCut(since time.Time) {
	if since.Before(a.begins) {
		a.fail(fault.New(fault.Unavailable, a.path, "the runlog before "+a.begins.Format(time.DateTime)+" was not read: at most "+
			strconv.Itoa(mostRunlog>>20)+" MiB are, of all runlogs (as that user, adlock report and log read it whole)"))
	}
}

func renamed(err error, from, to string) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		path.Path = strings.Replace(path.Path, from, to, 1)
	}
	return err
}
