//go:build soak

package network

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// clocks are the offsets of five hosts' clocks from the store's.
var clocks = []time.Duration{0, 5 * time.Second, 30 * time.Second, -20 * time.Second, 0}

func TestIfElapsedIsJudgedByTheClockOfTheStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, runner, asker *host) {
		for _, ahead := range []time.Duration{0, 30 * time.Second, -20 * time.Second, time.Hour, -time.Hour} {
			runner.skew(t, ahead)
			asker.skew(t, -ahead/2)
			runner.run(t, "echo ran", "--from-start").Ran(t)
			for options, want := range map[string]string{
				"--if-elapsed=10m":              `^too soon: completed [0-9ms]+ ago, IfElapsed is 10m; due in ([6-9]m|10m)`,
				"--if-elapsed=10m --from-start": `^too soon: started [0-9ms]+ ago, IfElapsed is 10m less 30s; due in [6-9]m`,
			} {
				asker.explains(t, want, strings.Fields(options)...)
			}
			helper.Eventually(t, "it is due", func() bool { return asker.run(t, "echo ran", "--if-elapsed=2s").Out == "ran\n" })
		}
	})
}

// A pass clock is a time by the asking host's clock, and is compared with that clock.
func TestAPassClockIsComparedWithTheClockOfItsOwnHost(t *testing.T) {
	onEachStore(t, func(t *testing.T, runner, asker *host) {
		asker.skew(t, -time.Hour)
		runner.run(t, "echo ran").Ran(t)
		for pass, want := range map[time.Duration]string{
			time.Minute:  "^too soon: completed (5.s|1m)",
			-time.Minute: "^too soon: completed since the pass began",
		} {
			asker.explains(t, want, "--if-elapsed=1h", fmt.Sprint("--now=", time.Now().Add(pass-time.Hour).Unix()))
		}
	})
}

// changesLeader makes the one member the leader of a new term, with a new clock.
func (m *node) changesLeader(t testing.TB) {
	t.Helper()
	m.Kill()
	m.Start(t)
	helper.Eventually(t, "it leads", m.leads)
}

// The clock that stamped the run is gone with its leader. Two figures are left: the difference by
// the machines' clocks, and the time for which the new leader has led.
func TestAfterAChangeOfLeadersARunIsAtLeastAsOldAsThat(t *testing.T) {
	m := startEtcd(t, 1)[0]
	runner, asker := newHost(t, url(m)), newHost(t, url(m))
	runner.skew(t, time.Hour)
	runner.run(t, "echo ran").Ran(t)
	m.changesLeader(t)
	asker.run(t, "echo ran", "--if-elapsed=1m").Denied(t)
	helper.Eventually(t, "it is due", func() bool { return asker.run(t, "echo ran", "--if-elapsed=3s").Out == "ran\n" })
}

// The store's clock is read when a run begins, so that the end of the run does not wait for the
// answer.
func TestARunIsStampedByTheClockOfTheNewLeader(t *testing.T) {
	m := startEtcd(t, 1)[0]
	runner, asker := newHost(t, url(m)), newHost(t, url(m))
	runner.skew(t, -time.Hour)
	done := filepath.Join(t.TempDir(), "done")
	run := runner.start(t, "until [ -e "+done+" ]; do sleep 0.1; done")
	m.changesLeader(t)
	touch(t, done)
	if status := run.Wait(t); status != 0 {
		t.Fatal(status, run.Output())
	}
	asker.run(t, "echo ran", "--if-elapsed=1m").Denied(t)
}

// One crontab line is played, each minute, on hosts with different clocks. The play does not wait for
// the minutes: each asking host gets the clock that it would have then. Hosts with equal clocks ask at
// the same time.
func TestFiveHostsRunOncePerTick(t *testing.T) {
	const ticks, period, apart = 6, time.Minute, 6 // the clocks differ by up to five minutes
	onEachStore(t, func(t *testing.T, a, _ *host) {
		began := time.Now().Truncate(period).Add(-time.Hour)
		type line struct {
			tick int
			host int
		}
		lines := map[time.Duration][]line{} // by the store's clock
		for i, ahead := range clocks {
			for tick := range ticks {
				at := time.Duration(tick)*period - apart*ahead
				lines[at] = append(lines[at], line{tick, i})
			}
		}
		var mu sync.Mutex
		ran := map[int][]int{}
		for _, now := range slices.Sorted(maps.Keys(lines)) {
			var all sync.WaitGroup
			for _, l := range lines[now] {
				h := a.another(t)
				shows := began.Add(now + apart*clocks[l.host] + time.Second) // cron may start it a second late
				h.skew(t, time.Until(shows).Truncate(time.Second))
				all.Go(func() {
					r := h.run(t, "echo ran", "--once-per=1m")
					mu.Lock()
					defer mu.Unlock()
					switch {
					case r.Status == 0 && r.Out == "ran\n" && r.Err == "":
						ran[l.tick] = append(ran[l.tick], l.host)
					case r.Status != 75 || r.Out+r.Err != "":
						t.Errorf("host %d: %+v", l.host, r)
					}
				})
			}
			all.Wait()
		}
		for tick := range ticks {
			if len(ran[tick]) != 1 {
				t.Errorf("in tick %d ran hosts %v", tick, ran[tick])
			}
		}
	})
}

func TestATickOnEtcdIsForgottenByItself(t *testing.T) {
	h := newHost(t, url(startEtcd(t, 1)...))
	pass := fmt.Sprint("--now=", time.Now().Unix())
	h.run(t, "echo ran", "--once-per=1s", pass).Ran(t)
	claimed := time.Now()
	h.run(t, "echo ran", "--once-per=1s", pass).Denied(t)
	helper.Eventually(t, "ten periods have passed", func() bool { return h.run(t, "echo ran", "--once-per=1s", pass).Out == "ran\n" })
	if after := time.Since(claimed); after < 8*time.Second {
		t.Errorf("it was forgotten after %v", after)
	}
}
