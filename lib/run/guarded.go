package run

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/supervise"
)

// How a script guards itself (adlock_guard): the shell asks the helper (verb guard) for the shell's command line, and
// then replaces itself by the helper (verb guarded). The helper acquires the lock and runs the script again, as its
// job. The script must not guard itself at that second start. If the job starts the script once more (xargs "$0",
// "$0" | tee), the script has to run without a lock, as a part of that job. IsPart reports both cases.

// IsPart reports whether a shell that reads a guarded script is at the script's second start, or belongs to a job
// that holds the script's atom in the directory. IsPart is false if that is unknown: the script then asks for
// the lock, and is denied if its own job has it.
//
// A terminal or a daemon that the job has started carries the job's mark for ever. Such a process has left
// the job's session, so what it starts is no part of the job, and may outlive the job.
func IsPart(shell process.Identity, directory string, a atom.Atom) bool {
	claims := process.Claims()
	if len(claims) > 0 && claims[0].Again && isSecondStart(shell, claims[0]) {
		return true
	}
	if slices.ContainsFunc(claims, func(c process.Claim) bool { return isOtherUsers(c, shell, a.Name()) }) {
		return true
	}
	dir, err := lockfile.Open(directory)
	if err != nil {
		return false
	}
	defer dir.Close()
	readers, err := dir.Readers(a.Name())
	return err == nil && slices.ContainsFunc(append(readers, atom.File{Kind: atom.ActiveLock, Name: a.Name()}), func(file atom.File) bool {
		lock, err := dir.Lock(file)
		if err != nil {
			return false
		}
		defer lock.Close()
		return lock.Content == record.Full && a.CheckFound(lock.Path(), lock.Record.Atom) == nil && isJobs(shell, lock, claims)
	})
}

// isSecondStart reports whether the shell's parent is the supervisor that has started the script again, and
// still holds the lock. Names are not compared, or a script whose name changes would be started again without end.
func isSecondStart(shell process.Identity, c process.Claim) bool {
	above, name := config.Split(c.File)
	dir, err := lockfile.Open(above)
	if err != nil {
		return false
	}
	defer dir.Close()
	lock, err := dir.Lock(atom.ParseFile(name))
	if err != nil {
		return false
	}
	defer lock.Close()
	parent, err := process.ParentOf(shell.PID)
	return err == nil && lock.SupervisedBy(parent) && lock.Record.Token == c.Token
}

// isJobs reports whether the shell belongs to the lock's job: the owner is the shell's ancestor (if
// a supervisor, without a daemon between the two), or the shell has the lock's mark and is in the owner's session. The
// mark may be a copy, so a living supervisor, which adopts all that is left of its job, must also be an ancestor.
func isJobs(shell process.Identity, lock *lockfile.Active, claims []process.Claim) bool {
	owner := lock.Record.Owner
	marked := owner.SharesSession(shell) && slices.ContainsFunc(claims, func(c process.Claim) bool { return c.Token == lock.Record.Token })
	line, err := process.Ancestors()
	at, lives := slices.Index(line, owner.PID), owner.Life() == process.Alive
	switch {
	case !lives:
		return marked
	case at < 1:
		return marked && (err != nil || !lock.Record.Supervised)
	}
	// A supervisor is the parent of its command, and adopts the orphans of its job: daemons too.
	child, err := process.Of(line[at-1])
	return marked || err == nil && (!lock.Record.Supervised || child.SharesSession(owner) || child.Same(lock.Job().Command))
}

// isOtherUsers reports whether a claim names a lock of this atom and, as its owner, a live process of another user.
// The owner must be an ancestor of the shell or in its session. The lock itself, which is that user's, is not read.
func isOtherUsers(c process.Claim, shell process.Identity, name atom.Name) bool {
	file := atom.ParseFile(filepath.Base(c.File))
	if file.Name != name || file.Kind != atom.ActiveLock && file.Kind != atom.ReaderLock {
		return false
	}
	owner, err := process.Of(c.PID)
	return err == nil && c.Start == owner.Start && c.Start != 0 && owner.UID != shell.UID &&
		(owner.SharesSession(shell) || process.IsAncestor(owner.PID))
}

// Guarded is the verb by which adlock_guard puts a supervisor in the shell's place. Its arguments are
// options, which name the atom except for the operand, then OPERAND, then the shell's program and its
// argument vector, as Encode returns them.
var Guarded = config.Verb{Name: "guarded", Owned: true, Run: guarded}

func guarded(args []string) (int, error) {
	r := newRun()
	supervise.LeaveSignals()
	r.Library = true
	var owner int
	options := r.options()
	words, err := r.parse(append(options,
		r.From.Setting(options),
		config.Option{Name: "owner", Arg: "PID", Set: config.Number(&owner, 1, 1<<30)},
		config.Option{Name: "since", Arg: "UPTIME", Set: config.Since(&r.Request.WaitSince)}), args)
	if err != nil {
		return 0, config.ForScript(options, err)
	}
	if len(words) < 3 || owner != os.Getpid() { // this process must replace the shell, not be its child
		return 0, config.LibraryOnly("guarded")
	}
	r.name = "" // OPERAND names the lock
	r.InScript = true
	a := &r.Request.Atom
	a.Operand = words[0]
	for i := range words {
		words[i] = decode(words[i])
	}
	if *a, err = atom.New(a.Program, a.Host, a.Operator, a.Operand); err != nil {
		return 0, err
	}
	if err := r.configure(options); err != nil {
		return 0, config.ForScript(options, err)
	}
	if r.dryRun {
		return r.printVerdict()
	}
	r.guards = true
	return r.supervised(command{name: a.Operand, path: words[1], args: words[2:], env: os.Environ()})
}

// lockFile returns the path of this process's lock; for a store, only the name that the file would have.
func (r *runArgs) lockFile() string {
	name := r.Request.Atom.Name()
	file := name.ActiveLock()
	if r.Request.Shared {
		file = name.ReaderLock(os.Getpid())
	}
	dir, err := config.DirOf(r.store)
	if err != nil || config.IsRemote(r.store) {
		return file
	}
	return dir + "/" + file
}

const longestArgument = 128 << 10 // MAX_ARG_STRLEN of execve(2), for pages of 4 KiB

// Encode returns a word in ASCII if the result is short enough: yash empties a word that is no text in its locale.
func Encode(word string) string {
	text := strconv.QuoteToASCII(word)
	if len(text) >= longestArgument {
		text = strconv.Quote(word)
	}
	if text == `"`+word+`"` && word != "" {
		return word
	}
	return text
}

func decode(text string) string {
	if word, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		return word
	}
	return text
}
