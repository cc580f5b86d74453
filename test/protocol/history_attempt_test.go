package protocol

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// attempt has the events of one attempt.
type attempt struct {
	name, atom string
	elapsed    time.Duration // IfElapsed
	begun      event
	taken      *event // nil: the job did not begin, or did not record it
	done       *event // nil: the job did not come to its end
	over       event  // end; gone if the contender died before it, or gave up
	verdict    string
}

// supervised reports whether an attempt is a job of `adlock run`, which releases its atom even if
// the job died before it recorded its end.
func supervised(name string) bool { return strings.HasPrefix(name, "run") }

// last is the attempt's last event before its end.
func (a *attempt) last() event {
	switch {
	case a.done != nil:
		return *a.done
	case a.taken != nil:
		return *a.taken
	}
	return a.begun
}

// operations of the attempt, for the model, each with the widest interval that the events
// allow.
func (a *attempt) operations() (all []porcupine.Operation) {
	add := func(from, to event, maybe bool, kinds ...kind) {
		for _, kind := range kinds {
			o := operation{kind: kind, attempt: a.name, elapsed: a.elapsed, from: from.at, to: to.at, maybe: maybe}
			all = append(all, porcupine.Operation{Input: o, Call: from.place, Return: to.place})
		}
	}
	switch {
	case a.verdict == busy:
		add(a.begun, a.over, false, opBusy)
		return all
	case a.verdict == tooSoon:
		add(a.begun, a.over, false, opTooSoon)
		return all
	case a.taken == nil: // cut short at any step
		add(a.begun, a.over, true, opCut)
		if supervised(a.name) {
			add(a.begun, a.over, true, opStamp, opUnlink)
		}
		return all
	}
	add(a.begun, *a.taken, false, opTakeover, opTake)
	if a.verdict == released {
		add(a.last(), a.over, false, opStamp, opUnlink)
		return all
	}
	if a.verdict == failed && (a.done != nil || supervised(a.name)) {
		add(a.last(), a.over, true, opStamp, opUnlink)
	}
	add(a.last(), a.over, true, opDie)
	return all
}

// attempts reads the events: the attempts in the order in which they began, and
// the ends of the contenders.
func attempts(events []event) (list []*attempt, ends map[string]event, err error) {
	known := map[string]*attempt{}
	ends = map[string]event{}
	for _, e := range events {
		a := known[e.attempt]
		switch {
		case e.kind == gone:
			ends[e.attempt] = e
		case e.kind == call && a == nil:
			a, err = newAttempt(e)
			known[e.attempt], list = a, append(list, a)
		case a == nil:
			err = fmt.Errorf("no such attempt: %v", e)
		default:
			err = a.add(e)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, a := range list {
		if err := a.close(ends); err != nil {
			return nil, nil, err
		}
	}
	return list, ends, nil
}

func newAttempt(e event) (*attempt, error) {
	seconds, err := strconv.ParseFloat(e.word(1), 64)
	return &attempt{
		name: e.attempt, atom: e.word(0), begun: e, verdict: failed,
		elapsed: time.Duration(seconds * float64(time.Second)),
	}, err
}

func (a *attempt) add(e event) error {
	switch {
	case e.kind == enter && a.taken == nil:
		a.taken = &e
	case e.kind == leave && a.done == nil:
		a.done = &e
	case e.kind == end && a.over.kind == "":
		a.over, a.verdict = e, e.word(0)
	case e.kind == clash:
	default:
		return fmt.Errorf("said twice: %v", e)
	}
	return nil
}

// close finds the end of an attempt that was cut short: it lasts until its contender is gone,
// as its begun steps may still happen.
func (a *attempt) close(ends map[string]event) error {
	if a.verdict == failed || a.verdict == lost {
		over, there := ends[a.begun.contender()]
		if !there {
			return fmt.Errorf("no event shows the end of %v", a.begun)
		}
		a.over = over
	}
	if a.over.place <= a.last().place {
		return fmt.Errorf("%v comes after its end, %v", a.last(), a.over)
	}
	return nil
}
