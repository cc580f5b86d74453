package network

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/lease"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func TestAtomIsOneAcrossHosts(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s), newHost(t, s)
	first := a.run(t, "echo $ADLOCK_FENCE")
	if first.Status != 0 || first.Err != "" {
		t.Fatalf("%+v", first)
	}
	b.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
	if why := b.run(t, "", "--if-elapsed=1h", "--dry-run"); why.Status != 75 || !strings.HasPrefix(why.Out, "too soon: completed ") {
		t.Errorf("%+v", why)
	}
	owner := a.start(t, "sleep 60")
	b.run(t, "echo ran").Denied(t)
	waited := b.command("echo $ADLOCK_FENCE", "--wait=60s").Start(t)
	owner.Signal(t, syscall.SIGTERM)
	if status := owner.Wait(t); status != 143 {
		t.Errorf("the owner's status is %d: %s", status, owner.Output())
	}
	if status := waited.Wait(t); status != 0 {
		t.Errorf("the one that waited: %d %s", status, waited.Output())
	}
	if before, after := number(t, first.Out), number(t, waited.Output()); after <= before {
		t.Errorf("fence %d came after %d", after, before)
	}
	for _, want := range []string{"event=acquire", "event=release .*status=143 signal=TERM"} {
		if !regexp.MustCompile(want).MatchString(a.runlog()) {
			t.Errorf("no %q in\n%s", want, a.runlog())
		}
	}
}

func number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestExpiredOwnerElsewhereIsAskedToEndItsJob(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s), newHost(t, s)
	owner := a.start(t, "trap '' INT; "+ready+"sleep 60; sleep 60")
	helper.Eventually(t, "it has expired", func() bool {
		return strings.HasPrefix(b.run(t, "", "--expire-after=2s", "--dry-run").Out, "expired: ")
	})
	b.run(t, "echo ran", "--expire-after=2s", "--if-elapsed=1s").Ran(t)
	if status := owner.Wait(t); status != 143 && status != 130 {
		t.Errorf("the owner's status is %d: %s", status, owner.Output())
	}
	for _, want := range []string{"event=expire", "event=takeover"} {
		if !strings.Contains(b.runlog(), want) {
			t.Errorf("no %q in\n%s", want, b.runlog())
		}
	}
	if !strings.Contains(a.runlog(), "event=signal") {
		t.Errorf("no signals in\n%s", a.runlog())
	}
}

// beats is a job that records the boottime every 20 ms; INT and TERM do not end it.
func beats(file string) string {
	return `trap "" INT TERM; while :; do read -r now _ </proc/uptime; echo $now >>` + file + `; sleep 0.02; done`
}

// beats starts such a job, and waits for its first record.
func (h *host) beats(t testing.TB, file string) *helper.Process {
	t.Helper()
	p := h.start(t, beats(file))
	helper.Eventually(t, "it beats", func() bool { text, _ := os.ReadFile(file); return len(text) > 0 })
	return p
}

const begins = `read -r now _ </proc/uptime; echo $now`

// margin returns how long after the last beat the newcomer began; it fails the test if the newcomer
// began earlier.
func margin(t testing.TB, file, began string) time.Duration {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(text))
	last, err := strconv.ParseFloat(lines[len(lines)-1], 64)
	if err != nil {
		t.Fatal(err)
	}
	next, err := strconv.ParseFloat(strings.TrimSpace(began), 64)
	if err != nil {
		t.Fatalf("%q: %v", began, err)
	}
	margin := time.Duration((next - last) * float64(time.Second))
	if margin < 0 {
		t.Errorf("the next job began %v before the last sign of the one before", -margin)
	}
	return margin
}

func TestOwnerThatIsCutOffEndsItsJobBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	cable := newRelay(t, nodes[0].client)
	a, b := newHost(t, "etcd://"+cable.address()+"/adlock").leased(lease.DefaultLease), newHost(t, url(nodes...)).leased(lease.DefaultLease)
	file := t.TempDir() + "/beats"
	owner := a.beats(t, file)
	cable.cut()
	cut := time.Now()
	next := b.run(t, begins, "--wait=60s")
	if next.Status != 0 {
		t.Fatalf("%+v\n%s", next, owner.Output())
	}
	t.Logf("cut off: the next job began %v after the cable was pulled, %v after the last sign of the job", time.Since(cut).Round(time.Millisecond), margin(t, file, next.Out))
	if status := owner.Wait(t); status != 137 {
		t.Errorf("the owner's status is %d", status)
	}
	if said := owner.Said(); !strings.HasPrefix(said, "adlock: o x: lost: the lease could not be renewed: etcd://") || strings.Count(said, "\n") != 1 {
		t.Errorf("the owner said %q", said)
	}
	if log := a.runlog(); strings.Contains(log, `\n`) {
		t.Errorf("a reason in the runlog has two lines: %s", log)
	}
}

// The next job is that of the pages' line for a nightly job, which all machines have.
func TestJobOfAKilledLocksmithEndsBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s).leased(lease.DefaultLease), newHost(t, s).leased(lease.DefaultLease)
	file := t.TempDir() + "/beats"
	owner := a.beats(t, file)
	owner.Kill(t)
	defer func() { a.run(t, begins, "--if-elapsed=12h", "--wait=60s").Denied(t) }()
	next := b.run(t, begins, "--if-elapsed=12h", "--wait=60s")
	if next.Status != 0 {
		t.Fatalf("%+v", next)
	}
	t.Logf("locksmith killed: margin %v", margin(t, file, next.Out))
	helper.Eventually(t, "the watchdog has said so", func() bool { return strings.Contains(a.runlog(), "event=lost") })
}

func TestJobOfAStoppedLocksmithEndsBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s).leased(lease.DefaultLease), newHost(t, s).leased(lease.DefaultLease)
	file := t.TempDir() + "/beats"
	owner := a.beats(t, file)
	owner.Signal(t, syscall.SIGSTOP)
	next := b.run(t, begins, "--wait=60s")
	if next.Status != 0 {
		t.Fatalf("%+v", next)
	}
	t.Logf("locksmith stopped: margin %v", margin(t, file, next.Out))
}

func TestStoreThatIsOutOfReachRunsNothing(t *testing.T) {
	t.Parallel()
	store := "etcd://" + freePort(t) + "/adlock"
	newHost(t, store).run(t, "echo ran").Refused(t, 69, store+": connection refused")
}

// Each machine would run the job. A script says the host by a variable, and its library always
// passes one on.
func TestAStoreWithoutAHostIsReportedOnce(t *testing.T) {
	t.Parallel()
	store := "etcd://" + freePort(t) + "/adlock"
	for way, said := range map[string]func(h *host) string{
		"run":    func(h *host) string { return h.run(t, "echo ran").Err },
		"script": func(h *host) string { return h.script("adlock_get o x").Run(t).Err },
	} {
		h := newHost(t, store)
		if first := said(h); strings.Contains(first, "without a host") {
			t.Errorf("%s with a host said %q", way, first)
		}
		h.env = slices.DeleteFunc(h.env, func(v string) bool { return strings.HasPrefix(v, "ADLOCK_HOST=") })
		for try, want := range []int{1, 0} {
			if text := said(h); strings.Count(text, "adlock: a store without a host: ") != want {
				t.Errorf("%s, try %d: said %q", way, try, text)
			}
		}
	}
}

func TestAStoreThatIsAwayIsReportedToTheHookOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, "etcd://"+freePort(t)+"/adlock")
	file := h.notes(t)
	for range 3 {
		h.run(t, "echo ran", "--operand=any").Refused(t, 69, "connection refused")
	}
	are(t, told(t, file, 1), [2]string{"not-run p.shared.o.any ", ": connection refused"})
	if log := h.runlog(); strings.Count(log, "event=not-run ") != 3 {
		t.Errorf("the runlog has %s", log)
	}
}

func TestMissingLocksmithIsOneLine(t *testing.T) {
	t.Parallel()
	h := newHost(t, "etcd://127.0.0.1:1/adlock")
	alone := t.TempDir() + "/adlock"
	program, err := os.ReadFile(h.bin)
	if err != nil {
		t.Fatal(err)
	}
	if err := need.WriteProgram(alone, program, 0o755); err != nil {
		t.Fatal(err)
	}
	h.bin = alone
	h.run(t, "echo ran").Refused(t, 69, "adlock-locksmith")
}

func TestAJobThatRunsItsOwnAtomAgainIsBusyWhateverTheAge(t *testing.T) {
	t.Parallel()
	h := newHost(t, url(startEtcd(t, 1)...))
	h.env = append(h.env, "again="+h.bin)
	if r := h.run(t, `"$again" run --program=p --operator=o --operand=x --expire-after=0 -- echo ran; echo $?`); r.Status != 0 || r.Out != "75\n" {
		t.Errorf("%+v", r)
	}
}

func TestSlotsCountAcrossHosts(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s), newHost(t, s)
	owner := a.start(t, "sleep 60", "--slots=1")
	b.run(t, "echo ran", "--slots=1", "--operand=y").Denied(t)
	b.run(t, "echo ran", "--slots=2", "--operand=y").Ran(t)
	waiting := b.command("echo ran", "--slots=1", "--operand=y", "--wait=60s").Start(t)
	owner.Signal(t, syscall.SIGTERM)
	if status := waiting.Wait(t); status != 0 || waiting.Output() != "ran\n" {
		t.Errorf("%d %q", status, waiting.Output())
	}
}

func TestALocksmithEndsAndSpeaksAsItsJobDid(t *testing.T) {
	t.Parallel()
	a := newHost(t, url(startEtcd(t, 1)...))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		p := a.command("kill -" + itoa(int(sig)) + " $$").Start(t)
		if by := p.EndedBy(t); by != sig || p.Output() != "" {
			t.Errorf("%v: ended by %d: %s", sig, by, p.Output())
		}
		a.run(t, "echo ran").Ran(t)
	}
	r := a.run(t, "echo out; echo err >&2; exit 4", "--quiet-ok")
	if r.Status != 4 || r.Out != "out\n" || r.Err != "err\n" {
		t.Errorf("%+v", r)
	}
}
