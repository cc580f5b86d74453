package network

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/lease"
	"adlock/lib/limit"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/relay"
)

func TestTwoHostsExcludeEachOtherFromAnAtomOfAStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		first := a.run(t, "echo $ADLOCK_FENCE")
		if first.Status != 0 || first.Err != "" || number(t, first.Out) < 1 {
			t.Fatalf("%+v", first)
		}
		b.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
		owner := a.start(t, "sleep 60")
		b.run(t, "echo ran").Denied(t)
		waited := b.command("echo $ADLOCK_FENCE", "--wait=60s").Start(t)
		owner.Signal(t, syscall.SIGTERM)
		endsWith(t, owner, 143, "")
		if status := waited.Wait(t); status != 0 || number(t, waited.Output()) <= number(t, first.Out) {
			t.Errorf("after %q: %d %q", first.Out, status, waited.Output())
		}
		for _, want := range []string{"event=acquire", "event=release .*status=143 signal=TERM"} {
			if !regexp.MustCompile(want).MatchString(a.runlog()) {
				t.Errorf("no %q in\n%s", want, a.runlog())
			}
		}
	})
}

func number(t testing.TB, text string) int64 {
	t.Helper()
	return must.Get(strconv.ParseInt(strings.TrimSpace(text), 10, 64))(t)
}

func TestAnExpiredOwnerOnAnotherHostEndsItsJob(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		owner := a.start(t, "trap '' INT; "+ready+"sleep 60; sleep 60")
		b.awaitExpired(t, "2s")
		b.run(t, "echo ran", "--expire-after=2s", "--if-elapsed=1s").Ran(t)
		if status := owner.Wait(t); status != 143 && status != 130 {
			t.Errorf("the owner's status is %d: %s", status, owner.Output())
		}
		helper.Contains(t, b.runlog(), "event=expire", "event=takeover")
		helper.Contains(t, a.runlog(), "event=signal")
	})
}

// beats returns a job that records the boottime every 20 ms; INT and TERM do not end it.
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

// margin returns how long after the last beat the newcomer began; it fails the test if the newcomer began earlier.
func margin(t testing.TB, file, began string) time.Duration {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	lines := strings.Fields(string(text))
	var last, next float64
	must.Get(fmt.Sscan(lines[len(lines)-1], &last))(t)
	must.Get(fmt.Sscan(began, &next))(t)
	margin := time.Duration((next - last) * float64(time.Second))
	if margin < 0 {
		t.Errorf("the next job began %v before the last sign of the one before", -margin)
	}
	return margin
}

// follows runs the next job, and fails the test if that begins before the last beat in the file.
func (h *host) follows(t testing.TB, file string, options ...string) {
	t.Helper()
	next := h.run(t, begins, append(options, "--wait=60s")...)
	next.Is(t, 0, "…", "…")
	t.Logf("margin %v", margin(t, file, next.Out))
}

// onCable returns two hosts of an etcd, with leases that end in a test. The first reaches it through the relay.
func onCable(t testing.TB) (cable *relay.Relay, a, b *host) {
	t.Helper()
	m := startEtcd(t, 1)[0]
	cable = relay.New(t, m.Client)
	a, b = newHost(t, url(at(cable.Address()))), newHost(t, url(m))
	return cable, a.leased(lease.DefaultLease), b.leased(lease.DefaultLease)
}

func TestAnOwnerThatIsCutOffEndsItsJobBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	cutOff := func(t *testing.T, cable *relay.Relay, a, b *host, job func(script string) helper.Command) *helper.Process {
		file := t.TempDir() + "/beats"
		owner := job(beats(file)).Start(t)
		helper.Eventually(t, "it beats", func() bool { return exists(file) })
		b.run(t, "echo ran").Denied(t)
		cable.Cut()
		b.follows(t, file)
		owner.Is(t, 137, "…")
		return owner
	}
	t.Run("etcd", func(t *testing.T) {
		cable, a, b := onCable(t)
		owner := cutOff(t, cable, a, b, func(script string) helper.Command { return a.command(script) })
		if said := owner.Said(); !strings.HasPrefix(said, "adlock: o x: lost: the lease could not be renewed: etcd://") || strings.Count(said, "\n") != 1 {
			t.Errorf("the owner said %q", said)
		}
		if log := a.runlog(); strings.Contains(log, `\n`) {
			t.Errorf("a reason in the runlog has two lines: %s", log)
		}
	})
	t.Run("etcd, a script", func(t *testing.T) {
		cable, a, b := onCable(t)
		cutOff(t, cable, a, b, func(script string) helper.Command { return a.script("adlock_get o x 0 || exit; " + script) })
	})
	t.Run("FTP", func(t *testing.T) {
		f := startFTP(t, "")
		cable := relay.New(t, f.Address)
		a, b := f.hostBy(t, cable.Address()).leased(lease.DefaultLease), f.host(t).leased(lease.DefaultLease)
		cutOff(t, cable, a, b, func(script string) helper.Command { return a.command(script) })
	})
}

// The next job has the options that the pages show for a nightly job which every machine has in its crontab.
func TestTheJobOfAKilledLocksmithEndsBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	_, a, b := onCable(t)
	file := t.TempDir() + "/beats"
	a.beats(t, file).Kill(t)
	b.follows(t, file, "--if-elapsed=12h")
	helper.Eventually(t, "the watchdog has said so", func() bool { return strings.Contains(a.runlog(), "event=lost") })
	a.run(t, begins, "--if-elapsed=12h", "--wait=60s").Denied(t)
}

func TestTheJobOfAStoppedLocksmithEndsBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	_, a, b := onCable(t)
	file := t.TempDir() + "/beats"
	a.beats(t, file).Signal(t, syscall.SIGSTOP)
	b.follows(t, file)
}

// Without a common host name each machine would run the job. A script sets the host by a variable, and the
// library always passes one on.
func TestARunInAStoreWithoutAHostWarnsOnce(t *testing.T) {
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
			check.Equal(t, fmt.Sprint(way, " warns in try ", try), strings.Count(said(h), "adlock: a store without a host: "), want)
		}
	}
}

func TestAnUnreachableStoreStartsNoJobAndCallsTheHookOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, "etcd://"+freePort(t)+"/adlock")
	file := h.notes(t)
	for range 3 {
		h.run(t, "echo ran", "--operand=any").Refused(t, 69, "connection refused")
	}
	are(t, told(t, file, 1), [2]string{"not-run p.shared.o.any ", ": connection refused"})
	check.Equal(t, "events", strings.Count(h.runlog(), "event=not-run "), 3)
}

func TestAMissingLocksmithIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	h := newHost(t, "etcd://127.0.0.1:1/adlock")
	alone := t.TempDir() + "/adlock"
	must.Do(t, os.Link(h.bin, alone))
	h.bin = alone
	h.run(t, "echo ran").Refused(t, 69, "adlock-locksmith")
}

func TestSlotsAreCountedAcrossHosts(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	owner := a.start(t, "sleep 60", "--slots=1")
	b.run(t, "echo ran", "--slots=1", "--operand=y").Denied(t)
	b.run(t, "echo ran", "--slots=2", "--operand=y").Ran(t)
	waiting := b.command("echo ran", "--slots=1", "--operand=y", "--wait=60s").Start(t)
	owner.Signal(t, syscall.SIGTERM)
	endsWith(t, waiting, 0, "ran\n")
}

func TestAGuardedLineRunsAndStoresADigestOfItsCommand(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	a := newHost(t, url(nodes...)).with("ADLOCK_PROGRAM=", "ADLOCK_OPERATOR=", "ADLOCK_OPERAND=", "ADLOCK_SHELL=/bin/bash")
	a.verb(t, "shell", "-c", `: s ADLOCK_SLOTS=2 ; [ "$SHELL-${ADLOCK_SHELL-}" = "$BASH-" ] && echo ran`).Ran(t)
	a.verb(t, "shell", "-c", "echo ran").Ran(t)
	if kept := ctl(t, nodes, "get", "--prefix", "/adlock/", "--print-value-only"); !strings.Contains(kept, "fnv128a:") {
		t.Errorf("the store has %s", kept)
	}
}

func TestALocksmithDiesOfItsJobsSignalAndAddsNoOutput(t *testing.T) {
	t.Parallel()
	a := newHost(t, url(startEtcd(t, 1)...))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		p := a.command("kill -" + itoa(int(sig)) + " $$").Start(t)
		if by := p.EndedBy(t); by != sig || p.Output() != "" {
			t.Errorf("%v: ended by %d: %s", sig, by, p.Output())
		}
		a.run(t, "echo ran").Ran(t)
	}
	a.run(t, "echo out; echo err >&2; exit 4", "--quiet-ok").Is(t, 4, "out\n", "err\n")
}

// A run waits for the atom first. Its age, counted from its start, includes that wait.
func TestFromStartCountsTheWaitForAnAtomOfAStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		owner := a.start(t, "sleep 60")
		waiter := b.command("true", "--wait=60s", "--from-start").Start(t)
		helper.Eventually(t, "it waits", func() bool { return strings.Contains(b.runlog(), "event=wait") })
		const waited = 4 * time.Second
		time.Sleep(waited) // the wait that must be counted
		stop(t, owner)
		endsWith(t, waiter, 0, "")
		told := b.run(t, "", "--from-start", "--if-elapsed=1h", "--dry-run")
		age := regexp.MustCompile(`^too soon: started (\S+) ago`).FindStringSubmatch(told.Out)
		if age == nil {
			t.Fatalf("%+v", told)
		}
		if ago, err := limit.Parse(age[1]); err != nil || ago < waited-time.Second {
			t.Errorf("said %q of a run that was asked for more than %v ago", told.Out, waited)
		}
	})
}

// A store is used by one version of adlock at a time. A record of another version may be the lock of a running job.
func TestALockOfAnotherVersionInAStoreIsAnError(t *testing.T) {
	t.Parallel()
	refuses := func(t *testing.T, a, b *host, change func()) {
		a.start(t, "sleep 60")
		change()
		for _, wait := range []string{"--wait=0", "--wait=20s"} {
			b.run(t, "echo ran", wait).Refused(t, 74, "of an unknown format")
		}
	}
	t.Run("etcd", func(t *testing.T) {
		nodes := startEtcd(t, 1)
		refuses(t, newHost(t, url(nodes...)), newHost(t, url(nodes...)), func() {
			key := keysOf(t, nodes, "/adlock/p.shared.o.x/line/")[0]
			record := ctl(t, nodes, "get", key, "--print-value-only")
			ctl(t, nodes, "put", key, "--", string(helper.Replaced(t, []byte(record), "format", "2")))
		})
	})
	t.Run("FTP", func(t *testing.T) {
		f := startFTP(t, "")
		refuses(t, f.host(t), f.host(t), func() {
			helper.Rewrite(t, f.Root+"/lock.p.shared.o.x.1/owner", "format", "2")
		})
	})
}

func TestOnlyARunThatCountsUsesATick(t *testing.T) {
	t.Parallel()
	const ever = "--once-per=520w" // no such tick ends while a test runs
	a, b := onEtcd(t)
	owner := a.start(t, "sleep 60")
	b.run(t, "echo ran", ever).Denied(t)
	stop(t, owner)
	if why := b.run(t, "", ever, "--dry-run"); why.Status != 0 || !strings.Contains(why.Out, "; not run yet in this tick of 520w, which began at ") {
		t.Errorf("busy has used the tick, or the dry run: %+v", why)
	}
	for range 2 {
		a.run(t, "exit 3", ever, "--retry-failed").Is(t, 3, "…", "…") // it does not count
	}
	a.run(t, "exit 3", ever).Is(t, 3, "…", "…")
	b.run(t, "echo ran", ever).Denied(t)
	b.run(t, "echo ran", ever, "--wait=forever", "--wait-elapsed").Denied(t)
	const used = `too soon: ran already in this tick of 520w, which began at `
	b.explains(t, "^"+used, ever)
	b.wants(t, `"due_in_seconds":[1-9].*"takeable":false,"why":"`+used, "status", "--json")
	b.run(t, "echo ran", "--once-per=1h").Ran(t)
	dead := a.start(t, "sleep 60", "--operand=y", ever)
	helper.KillSession(dead.PID)
	dead.Wait(t)
	b.run(t, "echo ran", "--operand=y", ever, "--wait=60s").Denied(t)
}
