//go:build soak

package protocol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// patience is for one model: seconds on an idle machine.
const patience = 20 * time.Minute

// search is a way in which spin looks for a fault.
type search int

const (
	everywhere search = iota // at every state
	nearest                  // at the nearest states first, for a short counterexample
	cycles                   // for runs without an end, under weak fairness: a temporal property
)

// verify has spin search the states of the model built with the definitions, and returns its output.
func verify(t *testing.T, file string, how search, definitions ...string) string {
	t.Helper()
	need.Tools(t, "spin", "gcc")
	dir := t.TempDir()
	model := filepath.Join(helper.Root(), "test/protocol", file)
	spin(t, dir, append(append([]string{"spin"}, definitions...), "-a", model)...)
	compile := []string{"gcc", "-w", "-DCOLLAPSE", "-DMEMLIM=2000", "-o", "pan", "pan.c"}
	// -E: a hung job is no deadlock of the protocol.
	search := []string{"./pan", "-E", "-m100000"}
	switch how {
	case everywhere:
		compile = append(compile, "-O1", "-DSAFETY") // -O2 takes as long to compile as it saves
	case nearest:
		compile = append(compile, "-DSAFETY", "-DBFS")
	case cycles:
		compile = append(compile, "-O1", "-DNFAIR=4")
		search = append(search, "-a", "-f")
	}
	spin(t, dir, compile...)
	return spin(t, dir, search...)
}

func spin(t *testing.T, dir string, args ...string) string {
	t.Helper()
	result := helper.Command{Args: args, Dir: dir, Limit: patience}.Run(t)
	if result.Status != 0 {
		t.Fatalf("%q: status %d\n%s%s", args, result.Status, result.Out, result.Err)
	}
	return result.Out
}

func mustHold(t *testing.T, said string) {
	t.Helper()
	if !strings.Contains(said, "errors: 0") || strings.Contains(said, "not completed") || strings.Contains(said, "too small") {
		t.Errorf("not verified:\n%s", said)
	}
	for line := range strings.Lines(said) {
		if strings.Contains(line, "states, stored") || strings.Contains(line, "elapsed time") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

func mustFail(t *testing.T, said, why string) {
	t.Helper()
	helper.Contains(t, said, why)
}

// mustFailEach builds the model with the definitions of each variant.
func mustFailEach(t *testing.T, file string, how search, why string, variants map[string][]string) {
	t.Helper()
	for variant, definitions := range variants {
		t.Run(variant, func(t *testing.T) { mustFail(t, verify(t, file, how, definitions...), why) })
	}
}

func TestNoStateOfTheProtocolModelViolatesASafetyClaim(t *testing.T) {
	mustHold(t, verify(t, protocol, everywhere))
}

// With three newcomers it takes more than a minute: only in the long form.
func TestAnAtomOfTheModelEventuallyBecomesAvailable(t *testing.T) {
	newcomers := "-DN=2"
	if os.Getenv("ADLOCK_SOAK") != "" {
		newcomers = "-DN=3"
	}
	mustHold(t, verify(t, protocol, cycles, "-DCRON", newcomers))
}

func TestAHungOwnerKeepsTheAtomForEverWithoutExpiry(t *testing.T) {
	mustFail(t, verify(t, protocol, cycles, "-DCRON", "-DN=2", "-DNOEXPIRY"), "acceptance cycle")
}

func TestAGuardOnAnUndeletedLastLockLetsNoTwoJobsRun(t *testing.T) {
	mustHold(t, verify(t, protocol, everywhere, "-DLASTGUARD", "-DN=2"))
}

func TestModelsWithoutASoundGuardRunTwoJobs(t *testing.T) {
	mustFailEach(t, protocol, everywhere, "assertion violated (jobs==0)", map[string][]string{ // two jobs
		"no guard: verify, then act":                               {"-DNOGUARD", "-DEXCLUSION"},
		"a guard on the last lock, a plain rm, and no second look": {"-DLASTGUARD", "-DPLAINRM", "-DEXCLUSION"},
		"a guard on the last lock, which a person deletes":         {"-DLASTGUARD", "-DADMIN", "-DEXCLUSION"},
	})
}

// The atom becomes available again because the message names the guard's holder.
func TestAStoppedHoldersGuardMustBeReportedAndNotBroken(t *testing.T) {
	mustHold(t, verify(t, standstill, everywhere, "-DUNCLAIMED"))
	mustHold(t, verify(t, standstill, cycles))
	mustFail(t, verify(t, standstill, nearest, "-DUNCLAIMED", "-DBREAKGUARD"), "assertion violated (jobs==0)")
	mustFail(t, verify(t, standstill, cycles, "-DSILENT"), "acceptance cycle")
}

func TestTheAgentActsOnceOnEachQuestionAndNoScriptHangs(t *testing.T) {
	mustHold(t, verify(t, questions, everywhere))
	mustHold(t, verify(t, questions, everywhere, "-DIMMORTAL"))
	mustFailEach(t, questions, everywhere, "assertion violated", map[string][]string{
		"the script keeps an end that writes":           {"-DKEEPS_WRITER"},
		"answers have no numbers":                       {"-DNO_NUMBERS"},
		"a question that was cut short is asked again":  {"-DASKS_AGAIN"},
		"a pid is believed":                             {"-DNO_LOOK"},
		"what a dead agent may have done is left alone": {"-DNO_WITHDRAWAL"},
	})
}

func TestALockIsReplacedOnlyWhenTheWholeJobIsDead(t *testing.T) {
	for claim, definitions := range map[string][]string{
		"a script":                  nil,
		"a newcomer inside the job": {"-DINSIDE"},
		"adlock run":                {"-DRUN"},
		"adlock run on a terminal, killed at any instant": {"-DRUN", "-DGATE", "-DHOLE"},
	} {
		t.Run(claim, func(t *testing.T) { mustHold(t, verify(t, job, everywhere, definitions...)) })
	}
}

func TestUnsoundJobVariantsLetAJobOutliveItsLock(t *testing.T) {
	mustFailEach(t, job, everywhere, outlived, map[string][]string{
		"members are not recorded":                           {"-DNORECORD"},
		"members are recorded when they have been signalled": {"-DRECORDLATE"},
		"an append that failed is passed over":               {"-DUNWRITTEN"},
		"a hidden process is dead":                           {"-DHIDDENDEAD"},
		"a hidden process is dead, to the supervisor":        {"-DRUN", "-DHIDDENDEAD"},
		"a group that shows a zombie hides no process":       {"-DZOMBIESHOWN"},
		"a newcomer inside the job spares its ancestors":     {"-DINSIDE", "-DSPARE"},
		"the command is not recorded":                        {"-DRUN", "-DNOCOMMAND"},
		"neither the command nor members are recorded":       {"-DRUN", "-DNOCOMMAND", "-DNORECORD"},
		"the command is not recorded under another's guard":  {"-DRUN", "-DGIVEUP"},
	})
}

// outlived: a process of the job lives.
const outlived = "assertion violated (left==0)"

// The holes that the model leaves out, so that the rest holds, are real. The first one threatens a job of `adlock run`.
func TestEachExceptionOfTheModelLetsAJobOutliveItsLock(t *testing.T) {
	mustFailEach(t, job, everywhere, outlived, map[string][]string{
		"adlock run is killed between fork and the record of a command that leaves its group": {"-DRUN", "-DHOLE"},
		"a process outlives its parent outside of the owner's group":                          {"-DORPHANS"},
		"one starts there between a look at the process table and the death of its parent":    {"-DLATEFORKS"},
	})
}

// A model in which no lock is ever replaced would hold under all claims.
func TestEachJobModelReplacesALockInSomeRun(t *testing.T) {
	mustFailEach(t, job, nearest, "assertion violated (path!=1)", map[string][]string{
		"a script's": {"-DWITNESS"}, "one with a newcomer inside the job": {"-DINSIDE", "-DWITNESS"}, "adlock run's": {"-DRUN", "-DWITNESS"},
	})
}

func TestTheStoreModelNeverRunsTwoJobsAtOnce(t *testing.T) {
	mustHold(t, verify(t, inStore, everywhere, "-DUNTOUCHED"))
	mustHold(t, verify(t, inStore, everywhere, "-DBEATS=0"))
	mustHold(t, verify(t, inStore, everywhere, "-DUNTOUCHED", "-DBEATS=0", "-DN=3"))
	mustHold(t, verify(t, inStore, everywhere, "-DREADERS", "-DBEATS=0", "-DN=3", "-DL=2"))
	if os.Getenv("ADLOCK_SOAK") != "" {
		mustHold(t, verify(t, inStore, everywhere, "-DBEATS=0", "-DN=3", "-DL=2"))
	}
}

func TestUnsoundStoreVariantsLetTwoJobsRun(t *testing.T) {
	mustFailEach(t, inStore, everywhere, "assertion violated (jobs==1)", map[string][]string{
		"a place is removed though its beat has moved": {"-DNOCOMPARE", "-DUNTOUCHED"},
		"the lease counts from the answer":             {"-DRECEIVED", "-DUNTOUCHED"},
		"the time that a beat shows counts":            {"-DSHOWN", "-DUNTOUCHED"},
		"a waiter begins on an old beat":               {"-DUNCHECKED", "-DUNTOUCHED"},
		"a machine is suspended":                       {"-DSTOPPED", "-DUNTOUCHED"},
	})
}

// threeWaiters are an owner and three newcomers that wait. A death and a person that prunes the line are
// too much together, and so is a stop.
func threeWaiters(definitions ...string) []string {
	return append([]string{"-DN=4", "-DPATIENT", "-DSTEADFAST"}, definitions...)
}

func TestTheQueueLosesNoWakeUpAndKeepsItsOrder(t *testing.T) {
	mustHold(t, verify(t, inLine, everywhere, "-DN=2"))
	mustHold(t, verify(t, inLine, everywhere, "-DN=2", "-DSLOW"))
	mustHold(t, verify(t, inLine, everywhere, "-DPATIENT", "-DSTOPS=0", "-DDEATHS=0"))
	mustHold(t, verify(t, inLine, everywhere, threeWaiters("-DSTOPS=0", "-DDEATHS=0")...))
	mustHold(t, verify(t, inLine, everywhere, threeWaiters("-DSTOPS=0", "-DPRUNES=0")...))
	mustHold(t, verify(t, inLine, cycles, "-DN=2", "-DAVAILABLE"))
	mustHold(t, verify(t, inLine, cycles, threeWaiters("-DSTOPS=0", "-DDEATHS=0", "-DPRUNES=0", "-DAVAILABLE")...))
}

func TestTheModelFindsTheFaultOfEachUnsoundQueueVariant(t *testing.T) {
	const twoOwners, unavailable, order = "assertion violated dead[path]", "acceptance cycle", "assertion violated (( !(waits[me])"
	for variant, c := range map[string]struct {
		how         search
		why         string
		definitions []string
	}{
		"the head does not look again when it has begun to watch":  {cycles, unavailable, threeWaiters("-DSTOPS=0", "-DDEATHS=0", "-DPRUNES=0", "-DAVAILABLE", "-DUNWATCHED")},
		"a waiter that becomes the head relies on an earlier look": {cycles, unavailable, threeWaiters("-DSTOPS=0", "-DDEATHS=0", "-DPRUNES=0", "-DAVAILABLE", "-DSTALE")},
		"a head that is stopped is not passed":                     {cycles, unavailable, threeWaiters("-DDEATHS=0", "-DPRUNES=0", "-DAVAILABLE", "-DNOPASS")},
		"a head for which the atom is not due stays in the line":   {cycles, unavailable, threeWaiters("-DSTOPS=0", "-DDEATHS=0", "-DPRUNES=0", "-DAVAILABLE", "-DKEEPSLINE")},
		"the head takes the atom without link":                     {everywhere, twoOwners, threeWaiters("-DSTOPS=0", "-DDEATHS=0", "-DPRUNES=0", "-DRIGHT")},
		"a waiter does not check that its inode is at the path":    {everywhere, order, threeWaiters("-DSTOPS=0", "-DDEATHS=0", "-DNOCHECK")},
		"the kernel wakes the first waiter, and another is faster": {everywhere, order, threeWaiters("-DSTOPS=0", "-DDEATHS=0", "-DPRUNES=0", "-DBARGE")},
	} {
		t.Run(variant, func(t *testing.T) { mustFail(t, verify(t, inLine, c.how, c.definitions...), c.why) })
	}
}
