package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/live"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/run"
)

var stopVerb = config.Verb{
	Name: "stop", Does: "end the running job of an atom carefully: CONT INT TERM KILL", Args: "NAME",
	Options: func() []config.Option { return newStop().options() }, Run: stop,
}

// stopArgs are what the options of stop set.
type stopArgs struct {
	request locker.Request
	hook    hook.Hook
	from    config.Origins
}

func newStop() *stopArgs {
	a := &stopArgs{request: locker.NewRequest(), from: config.Origins{}}
	a.request.Line = &live.Line{}
	return a
}

func (a *stopArgs) options() []config.Option {
	return append([]config.Option{
		config.Bind("pause", config.Bounded(&a.request.Pause)),
		config.StoreOption(),
	}, config.HookOptions(&a.hook)...)
}

func stop(args []string) (int, error) {
	a := newStop()
	names, err := a.from.Parse(a.options(), config.OptionsFirst(a.options(), args))
	if err != nil {
		return 0, err
	}
	if len(names) == 0 || slices.Contains(names, "") {
		return 0, fault.New(fault.Usage, "stop", "wants a NAME")
	}
	fault.OnQuit()
	err = a.stop(names)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, locker.ErrNotHeld) {
		fault.Warn(strings.Join(names, " "), "is not locked by any running job: nothing to stop")
		return 0, nil
	}
	return 0, err
}

// stop ends the job of the atom that names mean. The error is fs.ErrNotExist or locker.ErrNotHeld
// if nothing runs. Even root is refused a lock directory of another user, as that user could write
// any pid into it.
func (a *stopArgs) stop(names []string) error {
	path, err := config.Dir()
	if err != nil {
		return err
	}
	if store := os.Getenv("ADLOCK_STORE"); config.IsRemote(store) {
		return fault.New(fault.Usage, store, "stop is for lock directories; from any machine adlock run --replace ends the job, with its --host and --name and the command true")
	}
	dir, err := openDir(dirMeant(path, names))
	if err != nil {
		return err
	}
	defer dir.Close()
	k, lock, err := lockMeant("stop", names, dir)
	if err != nil {
		return err
	}
	if lock.Name.IsSlot() {
		return fault.New(fault.Usage, string(lock.Name), "is a slot: stop the atom that holds it (adlock status tells which)")
	}
	if a.request.Owner, err = process.Of(os.Getpid()); err != nil {
		return fault.Wrap("own process", err)
	}
	if err := a.from.Configure(a.options(), run.Options(), lock.Name); err != nil {
		return err
	}
	if k.Hook = &a.hook; a.hook.Command != "" {
		a.hook.Env = config.Environment()
	}
	return k.Stop(&a.request, lock, false)
}
