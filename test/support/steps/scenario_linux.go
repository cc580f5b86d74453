// Package steps divides adlock's work into its steps: the real program runs under strace(1),
// which kills it before one chosen system call, or lets that call fail. The scenarios are here;
// the packages crash and fault check what must hold afterwards.
//
// Two things make the steps countable. The program is built so that its main function stays on the
// first thread, the only one that strace follows. And the calls that read /proc, as many as there
// are processes, are filtered out by path: a crash between two of them has the same effect as one
// before the next call that touches the lock directory.
package steps

// The atom of all scenarios, and the names of its files; and another atom that shares its slot.
const (
	Atom   = "p h o x"
	Name   = "p.h.o.x"
	slot   = "p.h.slot-1"
	beside = "p.h.o.y"
)

// JobStatus is the exit status of the job of `adlock run`, which adlock itself never has.
const JobStatus = 3

// Scenario is one operation of adlock.
type Scenario struct {
	Name  string
	Want  int  // its status without a fault
	Owns  bool // with status 0 the script has the lock
	Ends  bool // it releases the atom of a run, or ends the run
	Runs  bool // it is `adlock run`
	Kills bool // it ends an owner, and reports that

	Terminal bool // it has a controlling terminal
	Named    bool // the file system has no O_TMPFILE
	LogFull  bool // the next line rotates the runlog

	before string // bash: the commands before the step, with $ADLOCK
	step   string // bash: the arguments of the program under strace
}

const (
	terms   = " --slots 1 --expire-after 1h --pause 0s "
	lock    = `-- "$ADLOCK_DIR/lock.` + Name + `" ` + Atom // as the library calls it
	acquire = "take --owner $$ --if-elapsed 1m --from-start" + terms + lock

	// The owner is a subshell, which is dead before the next command starts.
	deadOwner  = `( "$ADLOCK" take --owner $BASHPID` + terms + lock + ` )`
	deadReader = `( "$ADLOCK" take --owner $BASHPID --shared` + terms + lock + ` )`
	deadInSlot = `( "$ADLOCK" take --owner $BASHPID` + terms + `-- "$ADLOCK_DIR/lock.` + beside + `" p h o y )`

	share   = "take --owner $$ --shared" + terms + lock
	release = `release "$ADLOCK_DIR/lock.` + Name + `"`

	// An owner that ignores INT; later its lock is made nine hours old.
	hungOwner = `
bash -c 'trap "" INT; "$ADLOCK" take --owner $$` + terms + lock + `; echo >"$READY"; read -r x <"$NEVER"' >/dev/null 2>&1 &
disown
read -r x <"$READY"
lock=$ADLOCK_DIR/lock.` + Name + `
aged=$(sed 's/^monotonic=.*/monotonic=-9h/' "$lock") && printf '%s\n' "$aged" >"$lock" && touch -d '9 hours ago' "$lock"`

	run = "run --program p --host h --operator o --operand x --if-elapsed 1m" + terms + `-- sh -c "$JOB"`
)

// Scenarios lists all scenarios.
var Scenarios = []Scenario{
	{Name: "acquire", Owns: true, step: acquire},
	{Name: "acquire-named", Owns: true, Named: true, step: acquire},
	{Name: "acquire-rotation", Owns: true, LogFull: true, step: acquire},
	{Name: "acquire-shared", Owns: true, step: share},
	{Name: "acquire-from-dead-reader", Owns: true, before: deadReader, step: acquire},
	{Name: "acquire-dead-slot", Owns: true, before: deadInSlot, step: acquire},
	{Name: "release", Ends: true, before: `"$ADLOCK" ` + acquire, step: release},
	{Name: "release-shared", Ends: true, before: `"$ADLOCK" ` + share, step: release},
	{Name: "reclaim", Owns: true, before: deadOwner, step: "take --owner $$" + terms + lock},
	{Name: "takeover", Owns: true, Kills: true, before: hungOwner, step: "takeover --owner $$" + terms + lock},
	{Name: "takeover-named", Owns: true, Kills: true, Named: true, before: hungOwner, step: "takeover --owner $$" + terms + lock},
	{Name: "stop", Ends: true, Kills: true, before: hungOwner, step: "stop --pause 1ms " + Name},
	{Name: "run", Runs: true, Want: JobStatus, step: run},
	{Name: "run-terminal", Runs: true, Terminal: true, Want: JobStatus, step: run},
}

// stage starts the actor. Both bystanders are in its session, one in its process group too.
// They block all signals, so that a signal stays pending, where the test finds it. The actor leads
// no group: otherwise the processes of its group would rightly hold the atom after its death.
const stage = `
[ -z "$TTY" ] || exec 3<>"$TTY" # a session leader's first terminal is its controlling one
bystander() { exec env --block-signal sleep 600 </dev/null >/dev/null 2>&1; }
set -m; bystander & echo "bystander $!"; set +m
bystander & echo "bystander $!"
bash -c "$ACTOR"
read -r x <"$NEVER"
`

// actor is the shell that owns what it takes.
func (sc Scenario) actor() string {
	return `set -e
` + sc.before + `
set +e
echo "actor $$"
read -r x <"$START"
${TRACED//OWNER/$$} ` + sc.step + ` 2>"$TROUBLE"
status=$?
# As the library does if its helper has failed: withdraw a lock that the helper left.
[ -z "$OWNS" ] || [ $status = 0 ] || [ $status -gt 128 ] || "$ADLOCK" release --withdraw "$ADLOCK_DIR/lock.` + Name + `"
[ -z "$OWNS" ] || [ $status != 0 ] || echo "$$ inside" >>"$JOURNAL"
echo "status $status"
read -r x <"$END"
[ -z "$OWNS" ] || [ $status != 0 ] || echo "$$ outside" >>"$JOURNAL"
`
}

// job is the job of `adlock run`. It adds to the journal if it runs without a lock.
const job = `
[ -e "$ADLOCK_DIR/lock.` + Name + `" ] || echo "$$ unlocked" >>"$JOURNAL"
echo "$$ inside" >>"$JOURNAL"
read -r x <"$JOBGATE"
echo "$$ outside" >>"$JOURNAL"
exit 3`
