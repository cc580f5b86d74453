package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
)

var clearVerb = config.Verb{
	Name: "clear", Does: "force-remove a stale lock", Args: "NAME | --last --older D",
	Options: func() []config.Option { return new(clearArgs).options() }, Run: clear,
}

type clearArgs struct {
	last  bool
	older time.Duration // below 0: not given
}

func (a *clearArgs) options() []config.Option {
	return []config.Option{
		{Name: "last", Help: "prune last locks instead, and print their names", Set: config.Toggle(&a.last)},
		{Name: "older", Arg: "D", Help: "those not used for D", Set: config.Duration(&a.older)},
		config.StoreOption(),
	}
}

func clear(args []string) (int, error) {
	a := clearArgs{older: -1}
	names, err := config.Parse(a.options(), config.OptionsFirst(a.options(), args))
	if err != nil {
		return 0, err
	}
	fault.OnQuit()
	return 0, a.clear(names)
}

func (a *clearArgs) clear(names []string) error {
	path, err := config.Dir()
	if err != nil {
		return err
	}
	if err := a.check(names); err != nil {
		return err
	}
	if store := os.Getenv("ADLOCK_STORE"); config.IsRemote(store) {
		if a.last {
			return fault.New(fault.Usage, store, "--last is for lock directories; for "+path+": ADLOCK_STORE= adlock clear --last")
		}
		return config.Become(config.Locksmith, "for a store beyond this machine", "clear", names)
	}
	dir, err := openDir(dirMeant(path, names))
	if err != nil {
		return err
	}
	defer dir.Close()
	if a.last {
		return a.prune(dir)
	}
	lock, err := locker.LockMeant("clear", names, (&lockdir.Locker{Dir: dir}).List)
	if err != nil {
		return err
	}
	k, err := lockerOf(dir, lock.Name, nil)
	if err != nil {
		return err
	}
	return k.Clear(lock)
}

func (a *clearArgs) check(names []string) error {
	switch {
	case a.last && (len(names) != 0 || a.older < 0):
		return fault.New(fault.Usage, "clear", "--last wants --older D and nothing else")
	case a.last:
		return nil
	case slices.Contains(names, ""):
		return fault.New(fault.Usage, "clear", "NAME must not be empty")
	case len(names) == 0 || a.older >= 0:
		return fault.New(fault.Usage, "clear", "wants a NAME, or --last --older D")
	}
	return nil
}

func (a *clearArgs) prune(dir *lockfile.Dir) error {
	pruned, err := (&lockdir.Locker{Dir: dir}).Prune(a.older)
	for _, name := range pruned {
		err = errors.Join(err, config.PrintLine(name.LastLock()))
	}
	return err
}

// dirMeant returns the directory of a lock file if words are its path (with a slash), else dir.
func dirMeant(dir string, words []string) string {
	named := strings.Join(words, " ")
	above, name := config.Split(named)
	file := atom.ParseFile(name)
	if isLock := file.Kind == atom.ActiveLock || file.Kind == atom.ReaderLock; isLock && strings.Contains(named, "/") {
		return above
	}
	return dir
}

func openDir(path string) (*lockfile.Dir, error) {
	dir, err := lockfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fault.New(fault.Usage, path, "no such directory")
	}
	return dir, err
}

func lockerOf(dir *lockfile.Dir, name atom.Name, h *hook.Hook) (*lockdir.Locker, error) {
	rec, err := config.RecorderOf(dir.Path(""), name.Host(), h)
	return &lockdir.Locker{Dir: dir, Recorder: rec}, err
}
