package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

func details(e *runlog.Event) string {
	var parts []string
	say := func(there bool, text string) {
		if there {
			parts = append(parts, text)
		}
	}
	duration := func(word string, d runlog.Opt[time.Duration]) {
		say(d.Set, word+" "+terminal.Age(d.Value))
	}
	say(e.PID != 0, "pid "+runlog.On(e.PID, e.Node))
	say(e.Signal != "" && e.Target != 0, e.Signal+" to "+strconv.Itoa(e.Target))
	say(e.Verdict != "" && e.Reason == "", e.Verdict)
	duration("held", e.Duration)
	say(e.Status.Set && e.Status.Value >= 0, "status "+strconv.Itoa(e.Status.Value))
	say(e.Signal != "" && e.Target == 0, "by "+e.Signal)
	say(e.Shared, "shared")
	asks := e.Kind == runlog.Wait || e.Kind == runlog.Deny
	self := !asks && e.Owner == e.PID && (e.OwnerNode == "" || e.OwnerNode == e.Node)
	say(e.Owner != 0 && !self, "owner "+runlog.On(e.Owner, e.OwnerNode))
	say(e.Owner != 0 && self, "its own supervisor")
	if e.Reason == "" {
		duration("age", e.Age)
	}
	switch {
	case e.Kind == runlog.Wait && e.Wait == limit.Never:
		say(true, "waits without end")
	case e.Kind == runlog.Wait:
		say(true, "waits at most "+terminal.Duration(e.Wait))
	default:
		say(e.Wait > 0, "waited "+terminal.Age(e.Wait))
	}
	say(e.Count > 1, strconv.Itoa(e.Count)+" in a row")
	if e.Kind == runlog.Acquire || e.Kind == runlog.Expire {
		limits := func(word string, d runlog.Opt[time.Duration], from string) {
			explained := e.Kind == runlog.Acquire && from == string(policy.Learned) // the reason explains it
			say(d.Set && !explained, word+" "+limit.Format(d.Value))
		}
		limits("IfElapsed", e.IfElapsed, e.IfElapsedFrom)
		if e.ExpireAfterFrom != "" {
			limits("ExpireAfter", e.ExpireAfter, e.ExpireAfterFrom)
		}
	}
	say(e.Reason != "", e.Reason)
	return strings.Join(parts, ", ")
}

type eventObject struct {
	*runlog.Event
	user string
}

func (o eventObject) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	var failed error
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	add := func(key string, value any) {
		text.WriteString(`,"` + key + `":`)
		failed = errors.Join(failed, encoder.Encode(value))
	}
	for key, value := range o.Fields() {
		if t, is := value.(time.Time); is {
			value = limit.Instant(t)
		}
		if add(key, value); key == "event" && o.user != "" {
			add("user", o.user)
		}
	}
	text.WriteByte('}')
	text.Bytes()[0] = '{'
	return text.Bytes(), failed
}

func seconds(d runlog.Opt[time.Duration]) *limit.Seconds { return (*limit.Seconds)(d.Pointer()) }
