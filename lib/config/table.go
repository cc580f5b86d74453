package config

import (
	"strconv"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/policy"
)

const defaultStarving = 10 // after this many denials in a row, an atom is first reported as starving

// Table has every ADLOCK_ variable that a person may set, with its option if it has one. The options, the help, the
// completions, lint, a job's environment and what a line of a crontab may set follow from it; tests compare the
// manual, adlock.sh and adlock.mk with it. The verb that has an option gives it a setter (Bind).
var Table = []Option{
	{Name: "name", Env: "ADLOCK_NAME", Where: Nowhere, Arg: "NAME", Default: "the command names it", Help: "the lock's name, whatever the command and the directory: program " + atom.NamedProgram + ", operator " + atom.RunOperator + ", operand NAME"},
	{Name: "program", Env: "ADLOCK_PROGRAM", Where: Nowhere, Arg: "NAME", Default: "the command's base name", Help: "the program"},
	{Name: "host", Env: "ADLOCK_HOST", Where: Nowhere, Arg: "NAME", Default: "the node name at the first lock", Help: "the host", Inherited: true},
	{Name: "operator", Env: "ADLOCK_OPERATOR", Where: Nowhere, Arg: "NAME", Default: atom.RunOperator, Help: "the operator"},
	{Name: "operand", Env: "ADLOCK_OPERAND", Where: Nowhere, Arg: "NAME", Default: "the command's base name and cksum", Help: "the operand alone"},

	{Name: "exit-denied", Alias: "E", Env: "ADLOCK_EXIT_DENIED", Arg: "N", Default: strconv.Itoa(fault.StatusDenied), Help: "exit with N when denied"},
	{Name: "replace", Env: "ADLOCK_REPLACE", Help: "end a running job at once and take its place: ExpireAfter 0"},
	{Name: "enforce", Env: "ADLOCK_ENFORCE", Help: "end the job at ExpireAfter without waiting for a newcomer (exit 124)"},
	{Name: "whole-job", Env: "ADLOCK_WHOLE_JOB", Help: "hold the atom until every process that COMMAND started is gone, daemons too (Linux)"},
	{Name: "quiet-ok", Env: "ADLOCK_QUIET_OK", Help: "show the job's output only if it fails"},
	{Name: "retry-failed", Env: "ADLOCK_RETRY_FAILED", Help: "a failed run does not count for IfElapsed"},
	{Name: "once-per", Env: "ADLOCK_ONCE_PER", Arg: "D", Help: "run once in each tick of D, counted by the host's clock: for one crontab on many hosts"},
	{Name: "jitter", Env: "ADLOCK_JITTER", Arg: "D", Help: "first wait a random time up to D"},
	{Name: "dry-run", Env: "ADLOCK_DRY_RUN", Where: Nowhere, Help: "say the verdict and why; touch nothing"},
	{Name: "store", Env: storeVariable, Where: Location, Arg: "URL", Help: "where the locks are: a directory, " + storeForms, Inherited: true},

	{Name: "if-elapsed", Env: "ADLOCK_IF_ELAPSED", Minutes: InEnvironment, Arg: "D", Default: "0", Help: "do not run sooner than D after the last completion; auto: learn it"},
	{Name: "expire-after", Env: "ADLOCK_EXPIRE_AFTER", Minutes: InEnvironment, Arg: "D", Default: "never", Help: "end a job that has run for D and take its place; 0: end a running job at once; auto: learn the limit"},
	{Name: "notice", Env: "ADLOCK_NOTICE", Arg: "D", Default: "learned from its past runs, 15m at least", Help: "report a job that has run for D (by default only one that no limit ends); never: none"},
	{Name: "pause", Env: "ADLOCK_PAUSE", Arg: "D", Default: limit.Format(policy.DefaultPause), Help: "wait for D between the signals INT, TERM and KILL"},
	{Name: "wait", Env: "ADLOCK_WAIT", Arg: "D", Help: "wait at most D for a busy or full atom; forever: without end"},
	{Name: "wait-elapsed", Env: "ADLOCK_WAIT_ELAPSED", Help: "wait for IfElapsed too, within the time of --wait"},
	{Name: "slots", Env: "ADLOCK_SLOTS", Arg: "N", Help: "at most N atoms of the program at once; with --name alone, at most N runs of that name; 0: off"},
	{Name: "shared", Env: "ADLOCK_SHARED", Help: "hold the atom together with other shared runs: many readers or one writer"},
	{Name: "flock", Env: flockVariable, Arg: "FILE", Help: "beside the atom hold flock(2) on FILE, as flock(1) does, with --shared a shared one: for other users, and programs that lock FILE"},
	{Name: "from-start", Env: "ADLOCK_FROM_START", Help: "IfElapsed, less a tenth (1s to 30s), counts from the start of the last run"},
	{Name: "starving", Env: "ADLOCK_STARVING", Arg: "N", Help: "report when denied as full N, 10N, 100N times in a row; 0: never", Default: strconv.Itoa(defaultStarving)},
	{Name: "now", Env: "ADLOCK_NOW", Where: Nowhere, Arg: "EPOCH", Help: "the clock of the whole pass, in seconds since the epoch"},
	{Name: "verbose", Env: "ADLOCK_VERBOSE", Help: "say which lock was denied, and why", Inherited: true},
	{Name: "hook", Env: "ADLOCK_HOOK", Arg: "COMMAND", Help: "start COMMAND (by sh -c) when a job was ended by force or failed, is stuck or overdue, starves, or its lock was lost", Inherited: true},
	{Name: "hook-runs", Env: "ADLOCK_HOOK_RUNS", Help: "start the hook also at the start and the success of each run", Inherited: true},
	{Name: "syslog", Env: "ADLOCK_SYSLOG", Help: "write failed runs, and what is told of trouble, to the system's log too", Inherited: true},

	// These settings have no option, as they apply to every lock.
	{Env: dirVariable, Where: Location, Help: "the lock directory (default /var/lib/adlock for root; for others /var/lib/adlock-UID where it is theirs, else ~/.local/state/adlock)", Inherited: true},
	{Env: logDirVariable, Where: Location, Default: "the lock directory", Help: "where the runlog is", Inherited: true},
	{Env: logMaxVariable, Where: HeadOnly, Set: logMax(new(int)), Default: "10 MiB", Help: "size in bytes at which the runlog is rotated", Inherited: true},
	{Env: leaseVariable, Where: HeadOnly, Set: LeaseLength(new(time.Duration)), Default: "15s", Help: "how long a store beyond this machine keeps the lock of a silent owner, 6s to 1h", Inherited: true},

	// These are settings of adlock.sh, of the shell for crontabs and of stores. The help of `run` leaves them out.
	{Env: "ADLOCK_BIN", Where: Nowhere, Inherited: true},
	{Env: "ADLOCK_AGENT", Where: Nowhere, Inherited: true},
	{Env: ShellVariable, Where: Nowhere, Inherited: true},
	{Env: "ADLOCK_ETCD_PASSWORD_FILE", Where: Nowhere, Inherited: true},
	{Env: "ADLOCK_FTP_CACERT", Where: Nowhere, Inherited: true},
	{Env: "ADLOCK_FTP_PASSWORD_FILE", Where: Nowhere, Inherited: true},
}

const (
	storeVariable  = "ADLOCK_STORE"
	dirVariable    = "ADLOCK_DIR"
	flockVariable  = "ADLOCK_FLOCK"
	logDirVariable = "ADLOCK_LOGDIR"
	logMaxVariable = "ADLOCK_LOG_MAX"
	leaseVariable  = "ADLOCK_LEASE"
)

// ShellVariable names the shell that runs the jobs of a crontab whose SHELL is adlock's own.
const ShellVariable = "ADLOCK_SHELL"

// Bind returns the option of that name in Table, with a setter. It panics if there is none.
func Bind(name string, set func(value string) error) Option {
	known := Find(Table, "--"+name)
	if known == nil {
		panic("config.Table has no --" + name)
	}
	o := *known
	o.Set = set
	return o
}

// OfVariable returns the setting with that variable; nil if there is none.
func OfVariable(variable string) *Option {
	for i := range Table {
		if Table[i].Env == variable {
			return &Table[i]
		}
	}
	return nil
}

// Alone returns the settings without an option, for the help.
func Alone() (lines [][2]string) {
	for _, o := range Table {
		if o.Name == "" && o.Help != "" {
			lines = append(lines, [2]string{o.Env, o.meaning()})
		}
	}
	return lines
}
