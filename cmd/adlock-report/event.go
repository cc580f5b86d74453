package main

import (
	"strconv"
	"strings"
	"time"

	"adlock/lib/json"
	"adlock/lib/limit"
	"adlock/lib/runlog"
	"adlock/lib/terminal"
)

// details tells an event in words, without its time, kind and atom.
func details(e *runlog.Event) string {
	var parts []string
	say := func(there bool, text string) {
		if there {
			parts = append(parts, text)
		}
	}
	duration := func(word string, d runlog.Opt[time.Duration]) {
		say(d.Set, word+" "+terminal.Duration(d.Value))
	}
	say(e.PID != 0, "pid "+strconv.Itoa(e.PID))
	say(e.Slot.Set, "slot "+strconv.Itoa(e.Slot.Value))
	say(e.Signal != "" && e.Target != 0, e.Signal+" to "+strconv.Itoa(e.Target))
	say(e.Verdict != "" && e.Reason == "", e.Verdict)
	duration("held", e.Duration)
	say(e.Status.Set, "status "+strconv.Itoa(e.Status.Value))
	say(e.Signal != "" && e.Target == 0, "by "+e.Signal)
	say(e.Owner != 0 && e.Owner != e.PID, "owner "+strconv.Itoa(e.Owner))
	say(e.Owner != 0 && e.Owner == e.PID, "its own supervisor")
	if e.Reason == "" {
		duration("age", e.Age)
	}
	say(e.Wait > 0, "waited "+terminal.Duration(e.Wait))
	say(e.Count != 0, strconv.Itoa(e.Count)+" times")
	if e.Kind == runlog.Acquire || e.Kind == runlog.Expire {
		say(e.IfElapsed.Set, "IfElapsed "+limit.Format(e.IfElapsed.Value))
		say(e.ExpireAfter.Set, "ExpireAfter "+limit.Format(e.ExpireAfter.Value))
	}
	say(e.Reason != "", e.Reason)
	return strings.Join(parts, ", ")
}

// eventJSON is an event as one line, with the keys of the record.
func eventJSON(e *runlog.Event) []byte {
	var w json.Writer
	w.Object("", func() {
		w.Time("time", e.Time)
		w.Text("event", string(e.Kind))
		w.Some("program", e.Program)
		w.Some("host", e.Host)
		w.Some("operator", e.Operator)
		w.Some("operand", e.Operand)
		w.OptInt("slot", e.Slot)
		w.OptInt("pid", positive(e.PID))
		w.Some("token", e.Token)
		w.OptInt("owner", positive(e.Owner))
		w.Some("owner_token", e.OwnerToken)
		w.Some("verdict", e.Verdict)
		w.OptSeconds("if_elapsed", e.IfElapsed)
		w.OptSeconds("expire_after", e.ExpireAfter)
		w.OptSeconds("age", e.Age)
		w.OptSeconds("wait", runlog.Opt[time.Duration]{Value: e.Wait, Set: e.Wait != 0})
		w.OptSeconds("duration", e.Duration)
		w.OptInt("status", e.Status)
		w.Some("signal", e.Signal)
		w.OptInt("target", positive(e.Target))
		w.OptInt("count", positive(e.Count))
		w.Some("reason", e.Reason)
	})
	return w.Bytes()
}

// positive is a number that 0 stands for the absence of.
func positive(n int) runlog.Opt[int] { return runlog.Opt[int]{Value: n, Set: n != 0} }
