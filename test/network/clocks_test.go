//go:build soak

package network

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// clocks are the offsets of five hosts' clocks.
var clocks = []time.Duration{0, 5 * time.Second, 30 * time.Second, -20 * time.Second, 0}

func TestIfElapsedIsMeasuredByTheFTPServersClock(t *testing.T) {
	f := startFTP(t, "")
	runner, asker := f.host(t), f.host(t)
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
}

func TestAPassClockIsComparedWithTheClockOfItsOwnHost(t *testing.T) {
	f := startFTP(t, "")
	runner, asker := f.host(t), f.host(t)
	asker.skew(t, -time.Hour)
	runner.run(t, "echo ran").Ran(t)
	for pass, want := range map[time.Duration]string{
		time.Minute:  "^too soon: completed (5.s|1m)",
		-time.Minute: "^too soon: completed since the pass began",
	} {
		asker.explains(t, want, "--if-elapsed=1h", fmt.Sprint("--now=", time.Now().Add(pass-time.Hour).Unix()))
	}
}

// Hosts with different clocks start one crontab line in each of their minutes. The test does not wait for the
// minutes: each host that asks gets the clock that it would have then. Hosts with equal clocks ask at the same time.
func TestOnlyOneOfFiveHostsRunsInEachTick(t *testing.T) {
	const ticks, period, apart = 6, time.Minute, 6 // the clocks differ by up to five minutes
	a, _ := onEtcd(t)
	began := time.Now().Truncate(period).Add(-time.Hour)
	type line struct {
		tick int
		host int
	}
	lines := map[time.Duration][]line{} // by one clock
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
		check.Equal(t, fmt.Sprintf("hosts of %v that ran in tick %d", ran[tick], tick), len(ran[tick]), 1)
	}
}

func TestAClaimedTickOnEtcdExpires(t *testing.T) {
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

// buildSkewed builds adlock and its locksmith with another clock.
var buildSkewed = sync.OnceValues(func() (string, error) {
	changes, err := helper.Skewed()
	if err != nil {
		return "", err
	}
	return buildBoth("skewed", changes)
})

// buildBoth builds adlock and its locksmith with these changes, in a directory of that name.
func buildBoth(name string, c helper.Changes) (string, error) {
	dir := filepath.Join(beside, name)
	err := os.Mkdir(dir, 0o700)
	for _, program := range []string{"adlock", "adlock-locksmith"} {
		err = errors.Join(err, c.Build(filepath.Join(dir, program)))
	}
	return filepath.Join(dir, "adlock"), err
}

// skew gives the host a wall clock ahead of the machine's.
func (h *host) skew(t testing.TB, ahead time.Duration) { h.step(t, time.Unix(0, 0), ahead) }

// step makes the wall clock of the host step at that time.
func (h *host) step(t testing.TB, at time.Time, by time.Duration) {
	t.Helper()
	bin := must.Get(buildSkewed())(t)
	h.bin = bin
	from, ahead := fmt.Sprint("TEST_CLOCK_FROM=", at.Unix()), fmt.Sprint("TEST_CLOCK_AHEAD=", int(by.Seconds()))
	h.env = append(h.env, from, ahead)
}
