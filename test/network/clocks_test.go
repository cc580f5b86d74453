//go:build soak

package network

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// clocks are the offsets of five hosts' clocks from the store's.
var clocks = []time.Duration{0, 5 * time.Second, 30 * time.Second, -20 * time.Second, 0}

func skewed(t testing.TB, hosts []*host) []*host {
	t.Helper()
	for i, h := range hosts {
		h.skew(t, clocks[i])
	}
	return hosts
}

// together makes all hosts ask at once, and returns which of them ran.
func together(t testing.TB, hosts []*host, options ...string) (ran []int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Add(1)
		go func() {
			defer all.Done()
			r := h.run(t, "echo ran", options...)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.Status == 0 && r.Out == "ran\n" && r.Err == "":
				ran = append(ran, i)
			case r.Status != 75 || r.Out+r.Err != "":
				t.Errorf("host %d: %+v", i, r)
			}
		}()
	}
	all.Wait()
	return ran
}

// runsOncePerInterval makes each host in turn the last one that ran; then all hosts ask, before and
// after the interval.
func runsOncePerInterval(t *testing.T, hosts []*host) {
	t.Helper()
	interval := 4 * time.Second
	// asked returns the hosts that ran; shown is false if they took too long for a judgement.
	asked := func() (ran []int, shown bool) {
		began := time.Now()
		ran = together(t, hosts, fmt.Sprintf("--if-elapsed=%ds", int(interval.Seconds())))
		return ran, time.Since(began) < interval-2*time.Second
	}
	for i := 0; i < len(hosts)-1; {
		hosts[i].run(t, "echo ran", "--if-elapsed=0").Ran(t)
		completed := time.Now()
		soon, shown := asked()
		if shown {
			time.Sleep(time.Until(completed.Add(interval + time.Second))) // the interval under test
			var later []int
			if later, shown = asked(); shown && len(later) != 1 {
				t.Errorf("hosts %v ran after %v, the one before it on host %d, whose clock is %v ahead", later, interval, i, clocks[i])
			}
			if len(soon) > 0 {
				t.Errorf("hosts %v ran at once after host %d, whose clock is %v ahead", soon, i, clocks[i])
			}
		}
		switch {
		case shown:
			i++
		case interval > time.Minute:
			t.Fatal("to ask takes too long: nothing is shown")
		default:
			interval *= 2 // the machine is busy
		}
	}
}

func TestIfElapsedIsJudgedByTheClockOfEtcd(t *testing.T) {
	s := url(startEtcd(t, 1)...)
	var hosts []*host
	for range clocks {
		hosts = append(hosts, newHost(t, s))
	}
	runsOncePerInterval(t, skewed(t, hosts))
}

func TestIfElapsedIsJudgedByTheClockOfTheFTPServer(t *testing.T) {
	f := startFTP(t, "")
	var hosts []*host
	for range clocks {
		hosts = append(hosts, f.host(t))
	}
	runsOncePerInterval(t, skewed(t, hosts))
}

// startCountsByTheStore runs a job on a host whose clock is wrong, and asks on another host how
// long ago the run started.
func startCountsByTheStore(t *testing.T, runner, asker *host) {
	t.Helper()
	runner.run(t, "echo ran; sleep 2", "--from-start")
	told := asker.run(t, "", "--from-start", "--if-elapsed=10m", "--dry-run")
	if !regexp.MustCompile(`^too soon: started [0-9ms]+ ago, IfElapsed is 10m less 30s; due in [6-9]m`).MatchString(told.Out) {
		t.Errorf("said %+v of a run that was asked for seconds ago", told)
	}
}

func TestTheStartUnderEtcdIsByItsClock(t *testing.T) {
	s := url(startEtcd(t, 1)...)
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		runner := newHost(t, s)
		runner.skew(t, ahead)
		startCountsByTheStore(t, runner, newHost(t, s))
	}
}

func TestTheStartUnderFTPIsByItsClock(t *testing.T) {
	f := startFTP(t, "")
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		runner := f.host(t)
		runner.skew(t, ahead)
		startCountsByTheStore(t, runner, f.host(t))
	}
}

// A pass clock is a time by the asking host's clock, and is compared with that clock.
func TestAPassClockIsComparedWithTheClockOfItsOwnHost(t *testing.T) {
	s, f := url(startEtcd(t, 1)...), startFTP(t, "")
	for _, hosts := range [][]*host{{newHost(t, s), newHost(t, s)}, {f.host(t), f.host(t)}} {
		runner, asker := hosts[0], hosts[1]
		asker.skew(t, -time.Hour)
		runner.run(t, "echo ran").Ran(t)
		for pass, want := range map[time.Duration]string{
			time.Minute:  "^too soon: completed (5.s|1m)",
			-time.Minute: "^too soon: completed since the pass began",
		} {
			now := fmt.Sprint("--now=", time.Now().Add(pass-time.Hour).Unix())
			if told := asker.run(t, "", "--if-elapsed=1h", now, "--dry-run"); !regexp.MustCompile(want).MatchString(told.Out) {
				t.Errorf("with a pass that begins %v from now: %+v", pass, told)
			}
		}
	}
}

// The clock that stamped the run is gone with its leader. Two figures are left: the difference by
// the machines' clocks, and the time for which the new leader has led.
func TestAfterAChangeOfLeadersARunIsAtLeastAsOldAsThat(t *testing.T) {
	nodes := startEtcd(t, 1)
	runner, asker := newHost(t, url(nodes...)), newHost(t, url(nodes...))
	runner.skew(t, time.Hour)
	runner.run(t, "echo ran").Ran(t)
	nodes[0].kill()
	nodes[0].start(t)
	helper.Eventually(t, "it leads", nodes[0].leads)
	asker.run(t, "echo ran", "--if-elapsed=1m").Denied(t)
	helper.Eventually(t, "it is due", func() bool { return asker.run(t, "echo ran", "--if-elapsed=3s").Out == "ran\n" })
}

// The store's clock is read when a run begins, so that the end of the run does not wait for the
// answer.
func TestARunIsStampedByTheClockOfTheNewLeader(t *testing.T) {
	nodes := startEtcd(t, 1)
	runner, asker := newHost(t, url(nodes...)), newHost(t, url(nodes...))
	runner.skew(t, -time.Hour)
	done := filepath.Join(t.TempDir(), "done")
	run := runner.start(t, "until [ -e "+done+" ]; do sleep 0.1; done")
	nodes[0].kill()
	nodes[0].start(t)
	helper.Eventually(t, "it leads", nodes[0].leads)
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status := run.Wait(t); status != 0 {
		t.Fatal(status, run.Output())
	}
	asker.run(t, "echo ran", "--if-elapsed=1m").Denied(t)
}

// runsOncePerTick plays one crontab line, each minute, on hosts with different clocks. It does not
// wait for the minutes: each asking host gets the clock that it would have then. Hosts with equal
// clocks ask at the same time.
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
			shows := began.Add(now + apart*clocks[l.host] + time.Second) // cron may start it a second late
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
	t.Logf("hosts that ran, by tick: %v", ran)
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
