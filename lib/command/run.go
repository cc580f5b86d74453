package command

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/lib/supervise"
)

// runArgs are what the options of run set.
type runArgs struct {
	Settings
	exitDenied  int
	enforce     bool
	quietOK     bool
	retryFailed bool
	dryRun      bool
	jitter      time.Duration
	store       string
	open        Opener
}

// Opener opens the store at an address that is no lock directory's.
type Opener func(address string, host string) (Locker, error)

func newRun() *runArgs { return &runArgs{Settings: Defaults(), exitDenied: exit.Denied} }

// RunOptions are the options of run, for the help.
func RunOptions() []Option { return newRun().options() }

func (r *runArgs) options() []Option {
	a := &r.Request.Atom
	return append([]Option{
		{Name: "program", Env: "ADLOCK_PROGRAM", Arg: "NAME", Help: "the program (default: the command's base name)", Set: Text(&a.Program)},
		{Name: "host", Env: "ADLOCK_HOST", Arg: "NAME", Help: "the host (default: the node name)", Set: Text(&a.Host), Inherited: true},
		{Name: "operator", Env: "ADLOCK_OPERATOR", Arg: "NAME", Help: "the operator (default: run)", Set: Text(&a.Operator)},
		{Name: "operand", Alias: "name", Env: "ADLOCK_OPERAND", Arg: "NAME", Help: "the operand (default: the command line)", Set: Text(&a.Operand)},
		{Name: "exit-denied", Alias: "E", Env: "ADLOCK_EXIT_DENIED", Arg: "N", Help: "exit with N when denied (default 75)", Set: Number(&r.exitDenied, 0, 255)},
		{Name: "enforce", Env: "ADLOCK_ENFORCE", Help: "end the job at ExpireAfter without waiting for a newcomer (exit 124)", Set: Toggle(&r.enforce)},
		{Name: "quiet-ok", Env: "ADLOCK_QUIET_OK", Help: "show the job's output only if it fails", Set: Toggle(&r.quietOK)},
		{Name: "retry-failed", Env: "ADLOCK_RETRY_FAILED", Help: "a failed run does not count for IfElapsed", Set: Toggle(&r.retryFailed)},
		{Name: "jitter", Env: "ADLOCK_JITTER", Arg: "D", Help: "first wait a random time up to D", Set: Duration(&r.jitter)},
		{Name: "dry-run", Env: "ADLOCK_DRY_RUN", Help: "say the verdict and why; touch nothing", Set: Toggle(&r.dryRun)},
		{Name: "store", Env: "ADLOCK_STORE", Arg: "URL", Help: "where the locks are: a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR", Set: Text(&r.store), Inherited: true},
	}, r.Settings.Options()...)
}

// Locker takes and releases atoms: those of a lock directory (atom.Keeper) or
// of a store beyond this machine.
type Locker interface {
	Take(atom.Request) (atom.Outcome, error)
	Release(atom.Return) error
	RecordSignal(*atom.Request, process.Signalled)
}

// Run takes the atom, runs the command, releases. It returns the status to exit
// with; with an error and status 0 the error's own. A store beyond this machine
// is for the locksmith, which takes the place of this process.
func Run(args []string) (int, error) { return RunIn(nil, args) }

// RunIn is Run where stores can be opened.
func RunIn(open Opener, args []string) (int, error) {
	r := newRun()
	r.open = open
	command, err := Parse(r.options(), args)
	if err != nil {
		return 0, err
	}
	if len(command) == 0 {
		return 0, exit.New(exit.Usage, "run", "wants a COMMAND")
	}
	path, err := supervise.Find(command[0])
	if err != nil {
		return 0, err
	}
	if err := r.nameAtom(command); err != nil {
		return 0, err
	}
	if IsRemote(r.store) && r.open == nil {
		return 0, Become(Locksmith, "for a store beyond this machine", "run", args)
	}
	if r.dryRun {
		return r.sayVerdict()
	}
	return r.supervised(path, command)
}

// nameAtom fills in what the options left open. A command that is no absolute
// path means another thing in another directory: `make` in two projects is two
// atoms.
func (r *runArgs) nameAtom(command []string) (err error) {
	a := &r.Request.Atom
	if a.Program == "" {
		a.Program = filepath.Base(command[0])
	}
	if a.Host == "" {
		if a.Host, err = Host(); err != nil {
			return err
		}
	}
	if a.Operator == "" {
		a.Operator = "run"
	}
	if a.Operand == "" {
		a.Operand = strings.Join(command, " ")
		if !filepath.IsAbs(command[0]) {
			here, err := os.Getwd()
			if err != nil {
				return exit.Wrap("working directory", err)
			}
			a.Operand = here + " " + a.Operand
		}
	}
	*a, err = name.New(a.Program, a.Host, a.Operator, a.Operand)
	return err
}

// supervised holds the atom while the job runs. The order is supervise's: what
// holds the atom must be there before the lock names it.
func (r *runArgs) supervised(path string, command []string) (int, error) {
	k, err := r.locker()
	if err != nil {
		return 0, err
	}
	end := make(chan time.Duration, 1)
	r.Request.End = end
	plan := supervise.Job{
		Command: command[0], Path: path, Args: command, Env: Environment(r.options()), QuietOK: r.quietOK, End: end,
		Enforce: r.enforce, ExpireAfter: r.Request.Limits.ExpireAfter, Pause: r.Request.Pause,
		Observe: func(s process.Signalled) { k.RecordSignal(&r.Request, s) },
	}
	var token string // of the acquisition, once there is one
	r.recordJob(k, &plan, &token)
	job, err := supervise.Prepare(plan)
	if err != nil {
		return 0, exit.Wrap(command[0], err)
	}
	if r.jitter > 0 {
		time.Sleep(rand.N(r.jitter))
	}
	outcome, err := r.acquire(k, job)
	if err != nil || outcome.Verdict != atom.Acquired {
		job.Cancel()
		return r.denied(outcome, err)
	}
	token = outcome.Token
	if r.Request.Auto.ExpireAfter && outcome.ExpireAfter > 0 {
		job.ExpireAfter(outcome.ExpireAfter)
	}
	if outcome.Fence != "" {
		job.Export("ADLOCK_FENCE=" + outcome.Fence)
	}
	result, err := job.Run()
	report(command[0], err)
	if result.Alive && !linger(k, err) { // what lives of the job keeps the lock
		report(command[0], job.Show(result))
		return exit.NotPermitted, nil
	}
	released := k.Release(atom.Return{
		Files: r.Request.Atom.Name(), Token: outcome.Token,
		Status: runlog.Some(result.Status), Signal: signalName(result.Signal), Expired: result.Expired,
		NoStamp: !result.Started || r.retryFailed && result.Status != 0,
	})
	if Aloud(released, r.Verbose) {
		report(command[0], released)
	}
	report(command[0], job.Show(result))
	return result.Status, nil
}

// jobRecorder is a Locker whose locks outlive their owners, and so have to say
// what belongs to the job. A lease goes with the locksmith.
type jobRecorder interface {
	RecordCommand(files, token string, command process.Identity) error
	RecordMembers(files, token string, members []process.Identity) error
	BeingEnded(files, token string) (bool, error)
}

// recordJob has the job's processes written into the lock with that token.
func (r *runArgs) recordJob(k Locker, plan *supervise.Job, token *string) {
	recorder, can := k.(jobRecorder)
	if !can {
		return
	}
	files := r.Request.Atom.Name()
	plan.Begun = func(command process.Identity) error {
		record := func() error { return recorder.RecordCommand(files, *token, command) }
		err := record()
		if !errors.Is(err, lock.ErrGuarded) {
			return err
		}
		go func() { // beside the job, which is not to wait for a newcomer
			for errors.Is(err, lock.ErrGuarded) {
				err = record()
			}
			report(plan.Command, err)
		}()
		return nil
	}
	plan.Record = func(members []process.Identity) error {
		err := recorder.RecordMembers(files, *token, members)
		if errors.Is(err, lock.ErrGuarded) {
			return supervise.ErrBeingEnded
		}
		return err
	}
	plan.BeingEnded = func() bool {
		// What cannot be asked cannot be released either: the lock stays.
		ending, err := recorder.BeingEnded(files, *token)
		return err == nil && ending
	}
}

// report says what went wrong after the job was started: its status is its own.
func report(object string, err error) {
	if err != nil {
		exit.Report(exit.Wrap(object, err))
	}
}

func signalName(s syscall.Signal) string {
	if s == 0 {
		return ""
	}
	return strings.TrimPrefix(unix.SignalName(s), "SIG")
}

func (r *runArgs) locker() (Locker, error) {
	if IsRemote(r.store) {
		return r.open(r.store, r.Request.Atom.Host)
	}
	path, err := r.directory()
	if err != nil {
		return nil, err
	}
	return OpenKeeper(path, r.Request.Atom.Host)
}

// acquire takes the atom for this process and the job that waits at its gate.
func (r *runArgs) acquire(k Locker, job *supervise.Supervisor) (outcome atom.Outcome, err error) {
	if r.Request.Owner, err = process.Of(os.Getpid()); err != nil {
		return outcome, exit.Wrap("own process", err)
	}
	if r.Request.Job, err = job.Identity(); err != nil {
		return outcome, exit.Wrap("gate", err)
	}
	r.Request.Supervised = true
	if r.enforce {
		r.Request.Patience = 4 * r.Request.Pause
	}
	return k.Take(r.Request)
}

func (r *runArgs) denied(outcome atom.Outcome, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	r.Tell(outcome)
	return r.exitDenied, nil
}

// sayVerdict is --dry-run.
func (r *runArgs) sayVerdict() (int, error) {
	granted, reason, err := r.foretell()
	if err != nil {
		return 0, err
	}
	if why := r.Request.Explanation(); why != "" {
		reason += "\n" + why
	}
	if warning := r.Request.Limits.Warning(); warning != "" {
		reason += "\nwarning: " + warning
	}
	if !granted {
		return r.exitDenied, PrintLine(reason)
	}
	return exit.OK, PrintLine(reason)
}
