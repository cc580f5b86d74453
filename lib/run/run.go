// Package run has the verb `run` of the helper and of the locksmith, for any locker, and two verbs that run a job
// in the same way: `guarded`, for adlock_guard, and `shell`, for crontabs.
package run

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/fault"
	"adlock/lib/flock"
	"adlock/lib/hook"
	"adlock/lib/killer"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/lib/supervise"
	"adlock/lib/sysfile"
)

type runArgs struct {
	config.Settings
	exitDenied  int
	name        string // the lock's name; "": the operand or the command names it
	command     string // the command from which the lock's name is made; "": a person named it
	replace     bool
	enforce     bool
	wholeJob    bool
	quietOK     bool
	retryFailed bool
	dryRun      bool
	jitter      time.Duration
	oncePer     time.Duration
	store       string
	open        Opener
	guards      bool   // the job is a script that guards itself
	isShell     bool   // this is the shell for crontabs, whose lines have no options
	slotsBeside bool   // the line of the crontab that names the lock sets the slots too
	unenforced  bool   // --enforce was set, but no limit
	flock       string // the file to lock beside the atom; "": none
	unplaced    error  // why the lock's place or host is unknown; nil: both are known

	typedName string // the value of --name on the command line
}

type command struct {
	name string // for messages
	path string
	args []string // the argument vector; args[0] is the command's own name
	env  []string
}

// Opener opens a store; h is nil for a dry run, which writes nothing.
type Opener func(address, host string, h *hook.Hook) (locker.Locker, error)

func newRun() *runArgs {
	r := &runArgs{Settings: config.Defaults(), exitDenied: fault.StatusDenied}
	r.MayFlock = true
	return r
}

// setName refuses a second, different name: the user means two locks, or has mistyped one.
func (r *runArgs) setName(value string) error {
	if r.From["name"].Place == config.OnCommandLine {
		if r.typedName != "" && r.typedName != value {
			first, second := fault.Quoted(r.typedName), fault.Quoted(value)
			return errors.New("is " + first + " already; two locks nest: adlock run --name " + first + " -- adlock run --name " + second + " -- COMMAND")
		}
		r.typedName = value
	}
	return config.Text(&r.name)(value)
}

func Options() []config.Option { return newRun().options() }

func (r *runArgs) options() []config.Option {
	a := &r.Request.Atom
	return append([]config.Option{
		config.Bind("name", r.setName),
		config.Bind("program", config.Text(&a.Program)),
		config.Bind("host", config.Text(&a.Host)),
		config.Bind("operator", config.Text(&a.Operator)),
		config.Bind("operand", config.Text(&a.Operand)),
		config.Bind("exit-denied", config.Number(&r.exitDenied, 0, 255)),
		config.Bind("replace", config.Toggle(&r.replace)),
		config.Bind("enforce", config.Toggle(&r.enforce)),
		config.Bind("whole-job", config.Toggle(&r.wholeJob)),
		config.Bind("quiet-ok", config.Toggle(&r.quietOK)),
		config.Bind("retry-failed", config.Toggle(&r.retryFailed)),
		config.Bind("once-per", config.Period(&r.oncePer)),
		config.Bind("jitter", config.Bounded(&r.jitter)),
		config.Bind("dry-run", config.Toggle(&r.dryRun)),
		config.Bind("store", config.Text(&r.store)),
		config.Bind("flock", config.Text(&r.flock)),
	}, r.Settings.Options()...)
}

// Verb is the verb run. With open nil, adlock-locksmith replaces this process if the lock is in a store.
func Verb(open Opener) config.Verb {
	return config.Verb{
		Name: "run", Does: "take the lock, run COMMAND, release the lock", Args: "[--] COMMAND [ARG...]",
		Options: Options, More: more, Run: func(args []string) (int, error) { return run(open, args) },
	}
}

func run(open Opener, args []string) (int, error) {
	supervise.LeaveSignals()
	r := newRun()
	r.open = open
	status, err := r.run(args)
	return status, refused(args, err)
}

// parse is Origins.Parse, but a mistake in a location (config.Location) becomes r.unplaced, which configure reports.
func (r *runArgs) parse(options []config.Option, args []string) (words []string, err error) {
	if words, err = r.From.Parse(options, args); fault.KindOf(err) == fault.Misconfigured {
		r.unplaced, err = err, nil
	}
	return words, err
}

func (r *runArgs) run(args []string) (int, error) {
	options := r.options()
	words, err := r.parse(options, args)
	if err != nil {
		return 0, config.Elsewhere(err, counterpart)
	}
	if len(words) == 0 {
		return 0, fault.New(fault.Usage, "run", "wants a COMMAND")
	}
	if err := r.checkName(); err != nil {
		return 0, err
	}
	if words[0] == "" {
		return 0, fault.New(fault.Usage, "run", "wants a COMMAND, and the first word is empty")
	}
	r.Hook.Env = config.Environment()
	base, path, missing := find(words[0])
	if err := r.nameAtom(base, words); err != nil {
		return 0, cmp.Or(missing, err)
	}
	if err := r.configure(options); err != nil {
		return 0, err
	}
	if missing != nil {
		r.recordMissing(base, missing)
		return 0, meant(words, missing)
	}
	if config.IsRemote(r.store) && r.open == nil {
		return 0, config.Become(config.Locksmith, "for a store beyond this machine", "run", args)
	}
	if r.dryRun {
		return r.printVerdict()
	}
	return r.supervised(command{words[0], path, words, config.Environment()})
}

// Refusal returns the error with which run would refuse the options in args, with the variables of getenv. If getenv
// is nil, the variables are unknown, and Refusal does not check what they could contradict or complete.
func Refusal(getenv func(name string) string, args []string) error {
	return newRun().refusal(getenv, args)
}

func (r *runArgs) refusal(getenv func(name string) string, args []string) error {
	known := getenv != nil
	if !known {
		getenv = func(string) string { return "" }
	}
	if _, err := r.From.ParseIn(getenv, r.options(), args); err != nil || !known {
		return config.Elsewhere(err, counterpart)
	}
	if _, err := config.LogMax(getenv("ADLOCK_LOG_MAX")); err != nil {
		return err
	}
	if err := r.checkName(); err != nil {
		return err
	}
	r.useName()
	return r.check()
}

// recordMissing records that the command cannot be run (not in a dry run), in case no person reads standard error.
// The runlog and the hook get only base, because the first word of the command may hold a password.
func (r *runArgs) recordMissing(base string, missing error) {
	if r.dryRun {
		return
	}
	dir, rec, err := r.recorder()
	if err != nil {
		return
	}
	k, err := lockdir.Open(dir, rec)
	if err != nil {
		return
	}
	defer k.Dir.Close()
	var e *fault.Error
	if errors.As(missing, &e) {
		missing = &fault.Error{Kind: e.Kind, Object: base, Err: e.Err}
	}
	r.Request.Owner.PID = os.Getpid()
	k.Missing(&r.Request, fault.StatusOf(missing), missing)
}

// configure applies the settings files, reports their mistakes and checks the options. It also reports the error
// that parse has kept in unplaced: the atom and the hook are known now.
func (r *runArgs) configure(options []config.Option) error {
	if err := r.Configure(options, Options); err != nil {
		return err
	}
	if err := r.check(); err != nil || r.dryRun {
		return cmp.Or(err, r.unplaced)
	}
	if r.unplaced != nil {
		return r.notRun(locker.Outcome{}, r.unplaced)
	}
	dir, err := config.DirOf(r.store)
	if err != nil {
		return r.notRun(locker.Outcome{}, err)
	}
	config.TellMistakes(dir, Options)
	return nil
}

// check refuses options that this system cannot honour, or that conflict if neither wins. It also sets the tick.
func (r *runArgs) check() error {
	r.Request.Tick = policy.TickAt(r.Request.Clock(time.Now()).Effective(), r.oncePer)
	if err := cmp.Or(r.checkWhole(), r.checkReplace(), r.checkEnforce()); err != nil {
		return err
	}
	if r.flock != "" && config.IsRemote(r.store) {
		return fault.New(fault.Usage, r.From.Name("flock"), "is for locks of this machine: a store keeps its own")
	}
	return r.Settings.Check()
}

// checkName refuses --name with --operand from the same place (of two places, the one of higher precedence wins),
// and --slots that count nothing. It must be called before nameAtom.
func (r *runArgs) checkName() error {
	a := &r.Request.Atom
	if r.name != "" && a.Operand != "" {
		switch order := r.From.Compare("name", "operand"); {
		case order > 0:
			a.Operand = ""
		case order < 0:
			r.name = ""
		default:
			return fault.New(fault.Usage, "--name", "cannot go with --operand (nor ADLOCK_NAME with ADLOCK_OPERAND)")
		}
	}
	ofNone := r.Request.Slots > 0 && (a.Program == "" || a.Program == atom.NamedProgram)
	switch {
	case r.isShell && ofNone && !r.slotsBeside:
		return fault.New(fault.Usage, "--slots", "counts the jobs of one program, and the lines of a crontab have none: set ADLOCK_PROGRAM too, or a line's own: NAME ADLOCK_SLOTS=N")
	case r.isShell:
	case ofNone && a.Program != "" && r.name == "":
		return fault.New(fault.Usage, r.From.Name("slots"), "counts the atoms of one program, and "+atom.NamedProgram+" is that of --name")
	case ofNone && r.name != "" && (a.Operator != "" && a.Operator != atom.RunOperator || r.From.Compare("name", "slots") > 0):
		return fault.New(fault.Usage, r.From.Name("slots"), "counts the atoms of one program (--program), or the runs of a --name beside which it is set")
	}
	return nil
}

func (r *runArgs) checkWhole() error {
	if !r.wholeJob || supervise.CanKeepWhole() {
		return nil
	}
	return fault.New(fault.Unavailable, "--whole-job", "cannot be kept here: only a Linux kernel gives a job's orphans to its supervisor")
}

// checkReplace makes --replace ExpireAfter 0. If there is another ExpireAfter, the place of higher precedence wins,
// or the more specific section of a settings file. It is an error to set both in one place or one section.
func (r *runArgs) checkReplace() error {
	limits, auto := &r.Request.Limits, &r.Request.Auto
	other := auto.ExpireAfter || limits.Source != policy.None && limits.ExpireAfter != 0
	order := r.From.Compare("replace", "expire-after")
	switch {
	case !r.replace || other && order < 0:
		return nil
	case other && order == 0:
		return fault.New(fault.Usage, r.From.Name("replace"), "is ExpireAfter 0, and cannot go with another (--expire-after, ADLOCK_EXPIRE_AFTER)")
	}
	delete(r.From, "expire-after")
	auto.ExpireAfter = false
	limits.ExpireAfter, limits.Source = 0, policy.Said
	if r.From.IsFiled("replace") {
		limits.Source = policy.Filed
	}
	return nil
}

// checkEnforce ignores --enforce without a limit, but refuses it on the command line. If --replace is set too, the
// rules of checkReplace apply. A limit for a semaphore implies --enforce, as no newcomer ends one of its runs.
func (r *runArgs) checkEnforce() error {
	limits := &r.Request.Limits
	said := limits.Source != policy.None && limits.ExpireAfter != limit.Never
	if r.Request.IsSemaphore() && !limits.Preempt() {
		r.enforce = r.enforce || said || r.Request.Auto.ExpireAfter
	}
	if !r.enforce || r.Request.Auto.ExpireAfter || said && limits.ExpireAfter != 0 {
		return nil
	}
	limiting := "expire-after"
	if r.replace {
		limiting = "replace"
	}
	replaces, order := said, r.From.Compare("enforce", limiting)
	switch {
	case replaces && order == 0:
		return fault.New(fault.Usage, r.From.Name("enforce"), "cannot go with --replace, which is ExpireAfter 0: the job would end at once")
	case replaces && order > 0:
		limits.ExpireAfter, limits.Source = limit.Never, policy.None
	}
	if r.From["enforce"].Place == config.OnCommandLine {
		return fault.New(fault.Usage, "--enforce", "wants a limit to enforce: --expire-after D")
	}
	r.enforce, r.unenforced = false, true
	return nil
}

// harmless returns a missing command's name without passwords: word may be an assignment or a command line.
func harmless(word string) string {
	word = filepath.Base(word[:len(word)-len(strings.TrimLeft(word, letters+decimal+"./:@%+,-"))])
	if word == "." {
		return "command"
	}
	return word
}

func (r *runArgs) useName() {
	if r.name != "" {
		a := &r.Request.Atom
		a.Program, a.Operator, a.Operand = cmp.Or(a.Program, atom.NamedProgram), cmp.Or(a.Operator, atom.RunOperator), r.name
	}
}

// nameAtom fills in the parts of the atom that no option set. A command without an absolute path has another
// meaning in another directory: `make` in two projects is two atoms.
func (r *runArgs) nameAtom(base string, words []string) (err error) {
	a := &r.Request.Atom
	r.useName()
	a.Program, a.Operator = cmp.Or(a.Program, base), cmp.Or(a.Operator, atom.RunOperator)
	if a.Host == "" {
		if a.Host, err = lockfile.Host(r.store, !r.dryRun); a.Host == "" {
			return err
		}
		r.unplaced = cmp.Or(r.unplaced, err)
	}
	if a.Operand == "" {
		text := line(words)
		if !filepath.IsAbs(words[0]) {
			here, err := os.Getwd()
			if err != nil {
				return fault.New(fault.Unavailable, "working directory", "was removed, and names the lock of a command without a full path: say --name NAME")
			}
			text = "cd " + quote(here) + " && " + text
		}
		a.Operand, r.command = atom.Unnamed(base, text)
	}
	if *a, err = atom.New(a.Program, a.Host, a.Operator, a.Operand); err != nil {
		return err
	}
	if a.Command = r.command; a.Command != "" && config.IsRemote(r.store) {
		a.Command = atom.Digest(r.command)
	}
	return nil
}

// supervised takes the lock and runs c. On a terminal the gate that becomes c starts first (supervise.Prepare).
func (r *runArgs) supervised(c command) (int, error) {
	k, err := r.locker()
	if err != nil {
		return 0, r.notRun(locker.Outcome{}, err)
	}
	if dir, err := config.DirOf(r.store); err == nil && r.isApart() {
		config.TellNoHost(dir, r.store)
	}
	end := make(chan time.Duration, 1)
	r.Request.End = end
	plan := supervise.Job{
		Command: c.name, Path: c.path, Args: c.args, Env: c.env, QuietOK: r.quietOK, WholeJob: r.wholeJob, End: end,
		Enforce: r.enforce, ExpireAfter: r.Request.Limits.ExpireAfter, Pause: r.Request.Pause,
		Observe: func(s killer.Signalled) { k.RecordSignal(&r.Request, s) },
	}
	if err := r.openFile(); err != nil {
		return 0, r.notRun(locker.Outcome{}, err)
	}
	if r.Request.Flock != nil {
		plan.Keeps = func() []int { return []int{r.Request.Flock.Descriptor()} }
	}
	plan.Cancelled = r.cancelled(k)
	var held acquisition
	r.recordJob(k, &plan, &held)
	job, err := supervise.Prepare(plan)
	if err != nil {
		return 0, r.notRun(locker.Outcome{}, fault.Wrap(c.name, err))
	}
	if r.jitter > 0 {
		r.waitJitter(rand.N(r.jitter))
	}
	leaveLine := func() {}
	r.Request.Keep = func(leave func()) { leaveLine = leave }
	outcome, err := r.acquire(k, job)
	if err != nil || outcome.Verdict != locker.Acquired {
		job.Cancel()
		return r.denied(outcome, err)
	}
	held = acquisition{outcome.Token, time.Now()}
	if r.Request.Auto.ExpireAfter && outcome.ExpireAfter > 0 {
		r.Request.Limits.ExpireAfter, r.Request.Limits.Source = outcome.ExpireAfter, policy.Learned
		job.ExpireAfter(outcome.ExpireAfter, outcome.Watch)
	}
	r.watchOverdue(k, held)
	if outcome.Fence != "" {
		job.Export("ADLOCK_FENCE=" + outcome.Fence)
	}
	owner := r.Request.Owner
	job.Export(process.AddMark(c.env, process.Claim{PID: owner.PID, Start: owner.Start, Token: held.token, File: r.lockFile(), Again: r.guards}))
	r.Hook.Hold()
	result, err := job.Run()
	report(c.name, err)
	r.Hook.LetGo()
	r.Request.Flock.Free() // before the atom, or a newcomer could find the atom free and the file locked
	released := k.Release(locker.ReleaseRequest{
		Name: r.Request.Atom.Name(), Token: outcome.Token, PID: os.Getpid(),
		Status: runlog.Some(result.Status), Signal: sysfile.SignalName(result.Signal), Expired: result.Expired, Idle: result.Idle, Alone: result.Alone,
		NoStamp: !result.Started || r.retryFailed && result.Status != 0, Tick: r.Request.Tick,
	})
	leaveLine()
	if config.ShouldReport(released) {
		report(c.name, released)
	}
	report(locker.Title(r.Request.Atom), job.Show(result))
	result.DieAlike()
	return result.Status, nil
}

func (r *runArgs) openFile() (err error) {
	if r.flock != "" {
		r.Request.Flock, err = flock.Open(r.flock, r.Request.Shared, !r.dryRun)
	}
	return err
}

// acquisition is the token of the lock and the time at which the lock was acquired; zero before that.
type acquisition struct {
	token string
	since time.Time
}

func (a acquisition) age() time.Duration { return time.Since(a.since) }

func (r *runArgs) watchOverdue(k locker.Locker, held acquisition) {
	if r.Hook.Command == "" && !r.Hook.Syslog || r.Request.Notice == limit.Never {
		return
	}
	request := r.Request
	first := cmp.Or(request.Notice, learn.LeastNotice)
	go func() {
		for next := first; ; {
			time.Sleep(next - held.age())
			next = k.OwnOverdue(&request, held.token, held.age())
		}
	}()
}

// cancelled returns a function that logs a signal that came before the job began: no other event records such an end.
func (r *runArgs) cancelled(k locker.Locker) func(syscall.Signal) {
	line, asked := r.Request.StatusLine, locker.Request{Atom: r.Request.Atom, Owner: process.Identity{PID: os.Getpid()}}
	began := process.Boottime()
	return func(sig syscall.Signal) {
		line.Clear() // the status line does so at a signal too, but perhaps too late
		k.Cancelled(&asked, sysfile.SignalName(sig), process.Boottime()-began)
	}
}

func (r *runArgs) waitJitter(jitter time.Duration) {
	end := time.Now().Add(jitter)
	r.Request.StatusLine.Show(func() string {
		return locker.Title(r.Request.Atom) + ": starts in " + limit.FormatLeft(time.Until(end)) + " (--jitter)"
	})
	defer r.Request.StatusLine.Clear()
	time.Sleep(jitter)
}

// recordJob sets the functions by which the supervisor logs that the job expires or is stuck. For a JobRecorder it also
// sets those that record the job's processes, and that check whether another process is ending the job.
func (r *runArgs) recordJob(k locker.Locker, plan *supervise.Job, held *acquisition) {
	plan.Stuck = func(why error) { k.OwnStuck(&r.Request, held.token, held.age(), why) }
	plan.Expires = func(idle time.Duration) { k.OwnExpires(&r.Request, held.token, held.age(), idle) }
	locks, are := k.(locker.JobRecorder)
	if !are {
		return
	}
	name := r.Request.Atom.Name()
	plan.Begun = func(command process.Identity) error {
		record := func() error { return locks.RecordCommand(name, held.token, command) }
		err := record()
		if !errors.Is(err, locker.ErrGuarded) {
			return err
		}
		go func() { // so that the job does not wait for a newcomer
			for errors.Is(err, locker.ErrGuarded) {
				err = record()
			}
			report(plan.Command, err)
		}()
		return nil
	}
	var said bool
	recorded := func(err error) error {
		if !errors.Is(err, locker.ErrGuarded) {
			return err
		}
		// The supervisor tries again until the guard is free.
		if !said && fault.KindOf(err) == fault.NotPermitted {
			said = true
			plan.Stuck(err)
		}
		return supervise.ErrBeingEnded
	}
	plan.Record = func(members []process.Identity) error {
		return recorded(locks.RecordMembers(name, held.token, members))
	}
	plan.Rest = func(rest []process.Identity) error { return recorded(locks.RecordRest(name, held.token, rest)) }
	plan.BeingEnded = func() bool {
		// If the lock cannot be read, it cannot be released either, and stays.
		ending, err := locks.BeingEnded(name, held.token)
		return err == nil && ending
	}
}

// report prints an error (nil: none) that does not change the exit status, which is the job's.
func report(object string, err error) {
	if err != nil {
		fault.Report(fault.Wrap(object, err))
	}
}

func (r *runArgs) locker() (locker.Locker, error) {
	if config.IsRemote(r.store) {
		return r.open(r.store, r.Request.Atom.Host, r.Hook)
	}
	dir, rec, err := r.recorder()
	if err != nil {
		return nil, err
	}
	return lockdir.Open(dir, rec)
}

// recorder returns the lock directory and the recorder, which records runs under a store's locks in the runlog too.
func (r *runArgs) recorder() (dir string, rec locker.Recorder, err error) {
	rec.Hook = r.Hook
	if dir, err = config.DirOf(r.store); err != nil {
		return "", rec, err
	}
	if rec, err = config.RecorderOf(dir, atom.Canonify(r.Request.Atom.Host), r.Hook); rec.Log != nil && config.IsRemote(r.store) {
		rec.Log.Store = r.store
	}
	return dir, rec, err
}

func (r *runArgs) notRun(o locker.Outcome, why error) error {
	r.Request.Owner.PID = os.Getpid()
	dir, rec, err := r.recorder()
	if err == nil && config.IsRemote(r.store) {
		dir = ""
	}
	return rec.NotRun(&r.Request, dir, o, why)
}

func (r *runArgs) acquire(k locker.Locker, job *supervise.Supervisor) (outcome locker.Outcome, err error) {
	if r.Request.Owner, err = process.Of(os.Getpid()); err != nil {
		return outcome, fault.Wrap("own process", err)
	}
	if r.Request.Job, err = job.Identity(); err != nil {
		return outcome, fault.Wrap("gate", err)
	}
	r.Request.Supervised = true
	if r.enforce { // newcomers leave the ending to this supervisor: policy.Expiry
		r.Request.Patience = 4 * r.Request.Pause
	}
	return k.Take(r.Request)
}

func (r *runArgs) denied(outcome locker.Outcome, err error) (int, error) {
	if err != nil {
		return 0, r.notRun(outcome, err)
	}
	dir, err := config.DirOf(r.store)
	if err != nil {
		return 0, err
	}
	r.Remote = config.IsRemote(r.store)
	if r.Request.Inside(outcome) { // the denial has been reported
		return fault.StatusDenied, nil
	}
	r.Tell(outcome, dir)
	return r.exitDenied, nil
}

func (r *runArgs) printVerdict() (int, error) {
	d, where, err := r.verdict()
	if err != nil {
		return 0, err
	}
	reason := fault.Plain(d.Reason()) // a pause's reason may contain any bytes
	if why := r.Request.Explanation(); why != "" {
		reason += "\n" + why
	}
	if filed := r.From.Filed(); len(filed) > 0 {
		reason += "\nsettings files: " + strings.Join(filed, ", ")
	}
	for _, err := range config.Mistakes(Options) {
		reason += "\nwarning: " + err.Error()
	}
	for _, warning := range append(r.warnings(), r.overdue()) {
		if warning != "" {
			reason += "\nwarning: " + warning
		}
	}
	reason += "\nlock: " + where
	if r.command != "" {
		reason += "\ncommand: " + fault.Plain(cronline.Shown(r.command))
	}
	switch {
	case d.Step.Granted():
		return fault.StatusOK, config.PrintLine(reason)
	case d.Step == policy.Stuck:
		return fault.StatusNotPermitted, config.PrintLine(reason)
	}
	return r.exitDenied, config.PrintLine(reason)
}

func (r *runArgs) isApart() bool {
	return config.IsRemote(r.store) && r.From["host"].Place == config.Unsaid
}

func (r *runArgs) warnings() []string {
	warnings := []string{r.Request.Limits.Warning()}
	if r.Request.Tick.Asked() && !config.IsRemote(r.store) {
		warnings = append(warnings, "--once-per counts on this host alone: a --store is for several")
	}
	if r.isApart() {
		wrong, cure := config.NoHost(r.store)
		warnings = append(warnings, wrong+"; "+cure)
	}
	if r.unenforced {
		warnings = append(warnings, r.From.Name("enforce")+" is ignored, as no limit is said (--expire-after, ADLOCK_EXPIRE_AFTER)")
	}
	if r.enforce && r.Request.Limits.ExpireAfter == limit.Never {
		warnings = append(warnings, "--enforce ends nothing yet, as no ExpireAfter is learned")
	}
	if dir, err := config.DirOf(r.store); err == nil {
		warnings = append(warnings, r.Skipping(dir))
	}
	return warnings
}
