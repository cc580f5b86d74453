package network

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adlock/test/helper"
)

// onceEver is a tick so long that none ends while a test runs.
const onceEver = "--once-per=520w"

// runsOncePerTick is one crontab, each minute, on hosts with different clocks. No minute is
// waited for: each asking host gets the clock that it would have then. Hosts with equal clocks
// ask at once.
func runsOncePerTick(t *testing.T, hosts []*host) {
	t.Helper()
	const ticks, period, apart = 6, time.Minute, 6 // the clocks differ by up to five minutes
	began := time.Now().Truncate(period).Add(-time.Hour)
	type line struct {
		at   time.Duration // by the store's clock
		tick int
		host int
	}
	var lines []line
	for i := range hosts {
		for tick := range ticks {
			lines = append(lines, line{time.Duration(tick)*period - apart*clocks[i], tick, i})
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	var mu sync.Mutex
	ran := map[int][]int{}
	for len(lines) > 0 {
		now := lines[0].at
		var all sync.WaitGroup
		for ; len(lines) > 0 && lines[0].at == now; lines = lines[1:] {
			l, h := lines[0], *hosts[lines[0].host]
			h.env = slices.Clone(h.env)
			shows := began.Add(now + apart*clocks[l.host] + time.Second) // it may take a second
			h.skew(t, time.Until(shows).Truncate(time.Second))
			all.Add(1)
			go func() {
				defer all.Done()
				r := h.run(t, "echo ran", "--once-per=1m")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.Status == 0 && r.Out == "ran\n" && r.Err == "":
					ran[l.tick] = append(ran[l.tick], l.host)
				case r.Status != 75 || r.Out+r.Err != "":
					t.Errorf("host %d: %+v", l.host, r)
				}
			}()
		}
		all.Wait()
	}
	for tick := range ticks {
		if len(ran[tick]) != 1 {
			t.Errorf("in tick %d ran hosts %v", tick, ran[tick])
		}
	}
	t.Logf("who ran: %v", ran)
}

func TestFiveHostsRunOncePerTickOnEtcd(t *testing.T) {
	runsOncePerTick(t, newLab(t, len(clocks)).hosts)
}

func TestFiveHostsRunOncePerTickOnFTP(t *testing.T) {
	l := newLab(t, len(clocks))
	f := startFTP(t, "")
	f.stop(t)
	addLine(t, f.config, "listen_address=0.0.0.0\nlisten_port=21\n")
	args := append(inside(l.server), "vsftpd", f.config)
	f.cmd = exec.Command(args[0], args[1:]...)
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	f.cmd.Env = append(os.Environ(), f.mark())
	if err := helper.StartWithin(f.cmd); err != nil {
		t.Fatal(err)
	}
	var hosts []*host
	for i, etcds := range l.hosts {
		h := f.hostBy(t, fmt.Sprintf("192.0.2.%d:21", 4*i+1))
		h.inside = etcds.inside
		hosts = append(hosts, h)
	}
	helper.Eventually(t, "vsftpd answers", func() bool { return hosts[0].run(t, "", "--dry-run").Status == 0 })
	runsOncePerTick(t, hosts)
	if left, _ := filepath.Glob(f.root + "/tick.*"); len(left) != 6 {
		t.Errorf("the server has %v", left)
	}
}

// whatUsesATick tests either store.
func whatUsesATick(t *testing.T, a, b *host) {
	t.Helper()
	owner := a.start(t, "sleep 60")
	b.run(t, "echo ran", onceEver).Denied(t)
	owner.Signal(t, syscall.SIGTERM)
	owner.Wait(t)
	if why := b.run(t, "", onceEver, "--dry-run"); why.Status != 0 || !strings.Contains(why.Out, "; not run yet in this tick of 520w, which began at ") {
		t.Errorf("busy has used the tick, or the dry run: %+v", why)
	}
	for range 2 {
		if r := a.run(t, "exit 3", onceEver, "--retry-failed"); r.Status != 3 {
			t.Errorf("a failed run that does not count: %+v", r)
		}
	}
	if r := a.run(t, "exit 3", onceEver); r.Status != 3 {
		t.Errorf("%+v", r)
	}
	b.run(t, "echo ran", onceEver).Denied(t)
	b.run(t, "echo ran", onceEver, "--wait=forever", "--wait-elapsed").Denied(t)
	if why := b.run(t, "", onceEver, "--dry-run"); why.Status != 75 || !strings.HasPrefix(why.Out, "too soon: ran already in this tick of 520w, which began at ") {
		t.Errorf("%+v", why)
	}
	b.run(t, "echo ran", "--once-per=1h").Ran(t)
	dead := a.start(t, "sleep 60", "--operand=y", onceEver)
	helper.KillSession(dead.PID)
	dead.Wait(t)
	b.run(t, "echo ran", "--operand=y", onceEver, "--wait=60s").Denied(t)
}

func TestWhatUsesATickOnEtcd(t *testing.T) {
	s := url(startEtcd(t, 1)...)
	whatUsesATick(t, newHost(t, s), newHost(t, s))
}

func TestWhatUsesATickOnFTP(t *testing.T) {
	f := startFTP(t, "")
	whatUsesATick(t, f.host(t), f.host(t))
}

func TestATickOnEtcdIsForgottenByItself(t *testing.T) {
	nodes := startEtcd(t, 1)
	h := newHost(t, url(nodes...))
	pass := fmt.Sprint("--now=", time.Now().Unix())
	h.run(t, "echo ran", "--once-per=1s", pass).Ran(t)
	claimed := time.Now()
	h.run(t, "echo ran", "--once-per=1s", pass).Denied(t)
	helper.Eventually(t, "ten periods have passed", func() bool { return h.run(t, "echo ran", "--once-per=1s", pass).Out == "ran\n" })
	if after := time.Since(claimed); after < 8*time.Second {
		t.Errorf("it was forgotten after %v", after)
	}
}

func TestATickOnFTPIsForgottenByWhoClaimsALaterOne(t *testing.T) {
	f := startFTP(t, "")
	h := f.host(t)
	for i := range 12 {
		h.run(t, "echo ran", "--once-per=1m", fmt.Sprint("--now=", 1700000000+60*i)).Ran(t)
	}
	if left, _ := filepath.Glob(f.root + "/tick.*"); len(left) != 10 {
		t.Errorf("the server has %v", left)
	}
}
