package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/run"
)

var stopVerb = config.Verb{
	Name: "stop", Does: "end the running job of an atom carefully: CONT INT TERM KILL", Args: "NAME...",
	Options: func() []config.Option { return newStop().options() }, Run: stop,
}

type stopArgs struct {
	request locker.Request
	hook    hook.Hook
	dryRun  bool
	from    config.Origins
}

func newStop() *stopArgs {
	a := &stopArgs{request: locker.NewRequest(), from: config.Origins{}}
	a.request.StatusLine = &locker.StatusLine{}
	return a
}

func (a *stopArgs) options() []config.Option {
	return append([]config.Option{
		config.Bind("pause", config.Bounded(&a.request.Pause)),
		{Name: "dry-run", Help: "list what would be signalled", Set: config.Toggle(&a.dryRun)},
		config.StoreOption(),
	}, config.HookOptions(&a.hook)...)
}

func (a *stopArgs) parse(args []string) (names []string, err error) {
	return a.from.Parse(a.options(), config.OptionsFirst(a.options(), args))
}

// stop finds all jobs before it ends one, as a mistake in the last name must end no job. It refuses another user's
// lock directory even to root, as that user could write any pid into it.
func stop(args []string) (int, error) {
	names, err := newStop().parse(args)
	if err != nil {
		return 0, err
	}
	if len(names) == 0 || slices.Contains(names, "") {
		return 0, fault.New(fault.Usage, "stop", "wants a NAME")
	}
	fault.OnQuit()
	path, err := config.Dir()
	if err != nil {
		return 0, err
	}
	if store := os.Getenv("ADLOCK_STORE"); config.IsRemote(store) {
		return 0, fault.New(fault.Usage, store, "stop is for lock directories; from any machine adlock run --replace ends the job, with its --host and --name and the command true")
	}
	if path, err = dirOfAll(path, names); err != nil {
		return 0, err
	}
	dir, err := openDir(path)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	locks, err := locker.LocksMeant("stop", names, (&lockdir.Locker{Dir: dir}).List)
	for name, meant := range locks {
		if slices.ContainsFunc(meant, func(f atom.File) bool { return f.Name.IsSlot() }) {
			err = fault.New(fault.Usage, name, "is a slot: stop the atom that holds it (adlock status tells which)")
		}
	}
	if err != nil {
		return 0, err
	}
	for _, name := range slices.Sorted(maps.Keys(locks)) {
		found := false
		for _, lock := range locks[name] {
			a := newStop() // for each lock, as a settings file may have a section for it
			if _, err := a.parse(args); err != nil {
				return 0, err
			}
			ended := a.end(dir, lock)
			if !errors.Is(ended, fs.ErrNotExist) {
				found, err = true, errors.Join(err, ended)
			}
		}
		if !found {
			fault.Warn(name, "is not locked by any running job: nothing to stop")
		}
	}
	return 0, err
}

// dirOfAll is dirMeant, but names may also be several lock files, which must be in one directory.
func dirOfAll(dir string, names []string) (string, error) {
	if !locker.AreLockFiles(names) {
		return dirMeant(dir, names), nil
	}
	first := dirMeant(dir, names[:1])
	for i, name := range names {
		if other := dirMeant(dir, names[i:i+1]); other != first && !run.SameFile(other, first) {
			return "", fault.New(fault.Usage, name, "is in another lock directory than "+names[0])
		}
	}
	return first, nil
}

// end ends the job that holds a lock; a dry run lists it. It returns fs.ErrNotExist if no job holds the lock any more.
func (a *stopArgs) end(dir *lockfile.Dir, lock atom.File) error {
	if a.dryRun {
		return listOwner(dir, lock)
	}
	if err := a.from.Configure(a.options(), run.Options, lock.Name); err != nil {
		return err
	}
	k, err := lockerOf(dir, lock.Name, &a.hook)
	if err != nil {
		return err
	}
	if a.request.Owner, err = process.Of(os.Getpid()); err != nil {
		return fault.Wrap("own process", err)
	}
	return k.Stop(&a.request, lock, false)
}
