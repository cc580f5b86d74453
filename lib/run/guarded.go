package run

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/process"
)

// How a script guards itself (adlock_guard). Its shell asks the helper (guard) for its own command
// line, and then replaces itself by the helper (guarded), which takes the lock and runs the script
// again, as its job. The second start must know that it is the second, or it would start the script
// again without end. So it gets a Marker in the environment. It believes the marker only if its
// parent is a supervisor that holds the lock which the marker names, under the marker's
// acquisition. This covers all cases:
//  - an inherited or invented marker names no lock of this script's parent, and the script takes
//    its own lock. (A parent that holds such a lock could as well run the script without a guard.)
//  - a script whose lock was taken over between its two starts does not go on: it asks for the lock
//    again, and finds the atom busy;
//  - if the supervisor is killed in between, the second start has another parent. It asks for the
//    lock again, and finds the atom busy, because it belongs to the job that holds the atom;
//  - a supervisor that holds the script's own atom (adlock run, by hand) needs no marker.

// Marker names the acquisition under which a script was started again.
type Marker struct {
	Token string // "": any
	File  string
}

// MarkerOption is the marker as the option of a verb.
func MarkerOption(to *Marker) config.Option {
	return config.Bind("marker", func(value string) error {
		to.Token, to.File, _ = strings.Cut(value, " ")
		return nil
	})
}

func (m Marker) entry() string { return config.MarkerVariable + "=" + m.Token + " " + m.File }

// Holds reports whether the parent of the process child is the supervisor that holds this lock.
// It is false if anything cannot be read: the script then asks again.
func (m Marker) Holds(child int) bool {
	file := atom.ParseFile(filepath.Base(m.File))
	if !filepath.IsAbs(m.File) || file.Kind != atom.ActiveLock && file.Kind != atom.ReaderLock {
		return false
	}
	parent, err := process.ParentOf(child)
	return err == nil && m.isHeldBy(parent, file)
}

func (m Marker) isHeldBy(parent process.Identity, file atom.File) bool {
	dir, err := lockfile.Open(filepath.Dir(m.File))
	if err != nil {
		return false
	}
	defer dir.Close()
	lock, err := dir.Lock(file)
	if err != nil {
		return false
	}
	defer lock.Close()
	return lock.SupervisedBy(parent) && (m.Token == "" || m.Token == lock.Record.Token)
}

// Guarded is the verb by which adlock_guard puts a supervisor in the shell's place. Its arguments
// are options that name the atom without the operand, then OPERAND, and the shell's program and
// argument vector, each word encoded by Encode.
var Guarded = config.Verb{Name: "guarded", Run: guarded}

func guarded(args []string) (int, error) {
	if !config.SaysOwner(args) {
		return 0, config.LibraryOnly("guarded")
	}
	r := newRun()
	r.leaveQuit, r.Library = fault.OnQuit(), true
	var owner int
	words, err := r.parse(append(r.options(),
		r.From.Switch(r.options()),
		config.Option{Name: "owner", Arg: "PID", Set: config.Number(&owner, 1, 1<<30)},
		config.Option{Name: "since", Arg: "UPTIME", Set: config.Uptime(&r.Request.WaitSince)}), args)
	if err != nil {
		return 0, config.ForScript(r.options(), err)
	}
	if len(words) < 3 || owner != os.Getpid() { // it must replace the shell, not be its child
		return 0, config.LibraryOnly("guarded")
	}
	r.name = "" // the script's path names its lock; ADLOCK_NAME is for another one
	r.InScript = true
	a := &r.Request.Atom
	a.Operand = words[0]
	for i := range words {
		words[i] = decode(words[i])
	}
	if *a, err = atom.New(a.Program, a.Host, a.Operator, a.Operand); err != nil {
		return 0, err
	}
	if err := r.configure(); err != nil {
		return 0, config.ForScript(r.options(), err)
	}
	if r.dryRun {
		return r.printVerdict()
	}
	r.guards = true
	return r.supervised(command{name: a.Operand, path: words[1], args: words[2:], env: os.Environ()})
}

// marker names the lock that this process has taken.
func (r *runArgs) marker(token string) Marker { return Marker{Token: token, File: r.lockFile()} }

// lockFile is the file of the lock that this process has taken; in a store it has none, and the
// result is only its name.
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
	return filepath.Join(dir, file)
}

// Encode makes a word that every shell passes on unchanged, whatever its bytes: yash replaces a
// word that is no text in its locale by an empty one.
func Encode(word string) string {
	text := strconv.QuoteToASCII(word)
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
