package hold

import (
	"cmp"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/run"
	"adlock/lib/sysfile"
)

// Args are what the options of hold set.
type Args struct {
	config.Settings
	Store       string
	RetryFailed bool
	Owner       int // pid of the future owner; 0: the parent
}

func New() *Args {
	a := &Args{Settings: config.Defaults()}
	a.InScript = true
	return a
}

// Options returns the options of run for acquiring a lock, and --owner.
func (a *Args) Options() []config.Option {
	named := &a.Request.Atom
	program := config.Bind("program", config.Text(&named.Program))
	program.Default = atom.NamedProgram
	return append([]config.Option{
		program,
		config.Bind("host", config.Text(&named.Host)),
		config.Bind("operator", config.Text(&named.Operator)),
		config.Bind("retry-failed", config.Toggle(&a.RetryFailed)),
		config.Bind("store", config.Text(&a.Store)),
		{Name: "owner", Arg: "PID", Default: "the parent", Help: "the process that owns the lock: the one that asks, or an ancestor of it", Set: config.Number(&a.Owner, 1, 1<<30)},
	}, a.Settings.Options()...)
}

func (a *Args) Parse(args []string) error {
	rest, err := a.From.Parse(a.Options(), args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return fault.New(fault.Usage, "hold", "wants one NAME, behind the options")
	}
	if err := a.Name(rest[0]); err != nil {
		return err
	}
	return a.Complete(a.Options())
}

// Complete adds the atom's settings from settings files, and checks all settings.
func (a *Args) Complete(options []config.Option) error {
	return cmp.Or(a.Configure(options, run.Options), a.Check())
}

// Name sets the atom: that of `run --name`, unless options name another program, host or operator.
func (a *Args) Name(name string) (err error) {
	named := &a.Request.Atom
	if a.Request.Slots > 0 && named.Program == "" && (named.Operator != "" || a.From["slots"].Place != config.OnCommandLine) {
		return fault.New(fault.Usage, a.From.Name("slots"), "counts the atoms of one program (--program), or the owners of a NAME beside which it is set")
	}
	if named.Host == "" {
		if named.Host, err = lockfile.Host(a.Store, true); err != nil {
			return err
		}
	}
	*named, err = atom.New(cmp.Or(named.Program, atom.NamedProgram), named.Host, cmp.Or(named.Operator, atom.RunOperator), name)
	return err
}

// findOwner sets the owner. It fails if the owner is neither the asker, which has started this process, nor an ancestor
// of the asker. If the asker dies, another process becomes the parent; but then standard input, its pipe, has ended.
func (a *Args) findOwner() (err error) {
	if a.Owner == 0 && os.Getppid() == 1 {
		return fault.New(fault.Usage, "--owner", "must name the process that is to own the lock, as the parent is process 1")
	}
	if a.Owner == 1 && os.Getppid() != 1 { // process 1 is an ancestor of every process, and never ends
		return fault.New(fault.Usage, "--owner", "is process 1, which has not started this one: the lock would outlive every process that uses it")
	}
	if a.Owner == os.Getpid() { // Perl's $$, for example, read only after the fork
		return fault.New(fault.Usage, "--owner", "must be the asking program, and is hold itself")
	}
	if a.Request.Owner, err = locker.OwnedBy(cmp.Or(a.Owner, os.Getppid())); err != nil {
		var untold fault.Untold
		if errors.As(err, &untold) && !hungUp(0) { // the asker lives, so it has named a process that is dead
			return untold.Err
		}
		return err
	}
	if hungUp(0) {
		return fault.New(fault.Usage, "standard input", "has ended before anything was taken")
	}
	return nil
}

func hungUp(fd int) bool { return sysfile.Poll(fd, 0)&unix.POLLHUP != 0 }
