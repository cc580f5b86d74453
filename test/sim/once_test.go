package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"adlock/lib/policy"
)

// These tests simulate one crontab on a thousand hosts whose clocks differ: each host starts the line when its own
// clock shows a new minute, and asks for the tick (--once-per). The real package policy decides, numbers the ticks
// and sets how long the record of a tick is kept. The store is a map that can do two things, like etcd and FTP: it
// makes a key only if the key is missing, and it takes the time from its own clock.

// period is how often cron starts the line.
const period = time.Minute

// crontabs are the hosts of one simulation.
type crontabs struct {
	random *rand.Rand
	skews  []time.Duration // by how much each host's clock is ahead of the store's
	takes  time.Duration   // the longest run

	claimed map[int]time.Duration // by tick: until when its record is kept
	until   time.Duration         // the atom is held until then

	asked, ran map[int]int // by tick: how often
}

// start is a line that a host's cron starts at a moment of the store's clock.
type start struct {
	at   time.Duration
	host int
}

// newCrontabs makes n hosts whose clocks differ by at most spread.
func newCrontabs(n int, spread, takes time.Duration, seed uint64) *crontabs {
	c := &crontabs{
		random: rand.New(rand.NewPCG(seed, 0)), takes: takes, until: -1,
		claimed: map[int]time.Duration{}, asked: map[int]int{}, ran: map[int]int{},
	}
	for range n {
		c.skews = append(c.skews, c.upTo(spread))
	}
	return c
}

func (c *crontabs) upTo(d time.Duration) time.Duration {
	return time.Duration(c.random.Float64() * float64(d))
}

// play simulates so many minutes of each host, from the instant at which its clock shows one day.
func (c *crontabs) play(minutes int) {
	const day = 24 * time.Hour
	var all []start
	for host, ahead := range c.skews {
		for minute := range time.Duration(minutes) {
			all = append(all, start{day + minute*period - ahead, host})
		}
	}
	slices.SortFunc(all, func(a, b start) int { return cmp.Compare(a.at, b.at) })
	for _, s := range all {
		c.ask(s.at+c.upTo(time.Second), s.at+c.skews[s.host]) // cron, and the machine, take their time
	}
}

// ask lets one newcomer ask for a tick, at the instant at of the store's clock. The newcomer's own clock
// shows own, which decides for which tick it asks.
func (c *crontabs) ask(at, own time.Duration) {
	terms := policy.Terms{
		Tick:   policy.TickAt(time.Unix(0, int64(own)), period),
		Limits: policy.Limits{},
	}
	n := terms.Tick.Number
	c.asked[n]++
	s := policy.Situation{TickUsed: at < c.claimed[n], Active: policy.Active{Held: at < c.until, Owner: policy.Lives}}
	if policy.Decide(terms, s).Step != policy.Acquire {
		return
	}
	c.claimed[n] = at + terms.Tick.Life()
	c.until = at + c.upTo(c.takes)
	c.ran[n]++
}

// count returns in how many ticks no host ran the line, and in how many more than one host did.
func (c *crontabs) count() (never, twice int) {
	for n := range c.asked {
		switch {
		case c.ran[n] == 0:
			never++
		case c.ran[n] > 1:
			twice++
		}
	}
	return never, twice
}

const (
	thousand = 1000
	ticks    = 60
)

func TestOneOfAThousandHostsRunsInEachTick(t *testing.T) {
	for _, spread := range []time.Duration{0, time.Second, 30 * time.Second, period, 5 * period, 10*period - 2*time.Second} {
		c := newCrontabs(thousand, spread, 20*time.Second, 1)
		c.play(ticks)
		if never, twice := c.count(); never+twice > 0 || len(c.asked) != ticks {
			t.Errorf("clocks %v apart: of %d ticks no host ran in %d, more than one in %d", spread, len(c.asked), never, twice)
		}
	}
}

// If the clocks differ by more than documented, the promise does not hold. This shows that the test above can fail.
func TestATickRunsTwiceIfClocksAre15PeriodsApart(t *testing.T) {
	c := newCrontabs(thousand, 15*period, 20*time.Second, 1)
	c.play(ticks)
	if _, twice := c.count(); twice == 0 {
		t.Error("none ran twice")
	}
}

// A run that is longer than the period still holds the atom at the next tick. Then no host runs
// that tick, and no tick is run twice.
func TestNoTickRunsTwiceIfRunsOutlastThePeriod(t *testing.T) {
	c := newCrontabs(thousand, time.Second, 3*period, 1)
	c.play(ticks)
	if never, twice := c.count(); twice > 0 || never == 0 || never > ticks*3/4 {
		t.Errorf("no host ran in %d ticks, more than one in %d", never, twice)
	}
}
