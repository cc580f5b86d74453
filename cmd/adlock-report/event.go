package main

import (
	"strconv"
	"strings"
	"time"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/runlog"
)

// details describes an event in words, without its time, kind and atom.
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
	say(e.PID != 0, "pid "+history.On(e.PID, e.Node))
	say(e.Signal != "" && e.Target != 0, e.Signal+" to "+strconv.Itoa(e.Target))
	say(e.Verdict != "" && e.Reason == "", e.Verdict)
	duration("held", e.Duration)
	say(e.Status.Set, "status "+strconv.Itoa(e.Status.Value))
	say(e.Signal != "" && e.Target == 0, "by "+e.Signal)
	say(e.Shared, "shared")
	asks := e.Kind == runlog.Wait || e.Kind == runlog.Deny
	self := !asks && e.Owner == e.PID && (e.OwnerNode == "" || e.OwnerNode == e.Node)
	say(e.Owner != 0 && !self, "owner "+history.On(e.Owner, e.OwnerNode))
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
		limits := func(word string, d runlog.Opt[time.Duration]) {
			text := word + " " + limit.Format(d.Value)
			say(d.Set && !strings.Contains(e.Reason, text+": "), text) // the reason already has a learned limit
		}
		limits("IfElapsed", e.IfElapsed)
		if e.ExpireAfterFrom != "" {
			limits("ExpireAfter", e.ExpireAfter)
		}
	}
	say(e.Reason != "", e.Reason)
	return strings.Join(parts, ", ")
}

// eventObject is an event in JSON, with the keys of the runlog.
type eventObject struct {
	Time            string         `json:"time"`
	Event           runlog.Kind    `json:"event"`
	User            string         `json:"user,omitempty"`
	Program         string         `json:"program,omitempty"`
	Host            string         `json:"host,omitempty"`
	Operator        string         `json:"operator,omitempty"`
	Operand         string         `json:"operand,omitempty"`
	Store           string         `json:"store,omitempty"`
	PID             int            `json:"pid,omitempty"`
	Node            string         `json:"node,omitempty"`
	Token           string         `json:"token,omitempty"`
	Shared          bool           `json:"shared,omitempty"`
	Owner           int            `json:"owner,omitempty"`
	OwnerNode       string         `json:"owner_node,omitempty"`
	OwnerToken      string         `json:"owner_token,omitempty"`
	Verdict         string         `json:"verdict,omitempty"`
	IfElapsed       *limit.Seconds `json:"if_elapsed,omitempty"`
	ExpireAfter     *limit.Seconds `json:"expire_after,omitempty"`
	IfElapsedFrom   string         `json:"if_elapsed_from,omitempty"`
	ExpireAfterFrom string         `json:"expire_after_from,omitempty"`
	Overdue         *limit.Seconds `json:"overdue,omitempty"`
	Age             *limit.Seconds `json:"age,omitempty"`
	Wait            limit.Seconds  `json:"wait,omitempty"`
	Duration        *limit.Seconds `json:"duration,omitempty"`
	Status          *int           `json:"status,omitempty"`
	Signal          string         `json:"signal,omitempty"`
	Target          int            `json:"target,omitempty"`
	Count           int            `json:"count,omitempty"`
	Reason          string         `json:"reason,omitempty"`
}

func objectOf(e *runlog.Event) *eventObject {
	return &eventObject{
		Time: limit.Instant(e.Time), Event: e.Kind,
		Program: e.Program, Host: e.Host, Operator: e.Operator, Operand: e.Operand,
		Store: e.Store, PID: e.PID, Node: e.Node, Token: e.Token, Shared: e.Shared,
		Owner: e.Owner, OwnerNode: e.OwnerNode, OwnerToken: e.OwnerToken, Verdict: e.Verdict,
		IfElapsed: seconds(e.IfElapsed), ExpireAfter: seconds(e.ExpireAfter),
		IfElapsedFrom: e.IfElapsedFrom, ExpireAfterFrom: e.ExpireAfterFrom, Overdue: seconds(e.Overdue), Age: seconds(e.Age),
		Wait: limit.Seconds(e.Wait), Duration: seconds(e.Duration), Status: e.Status.Pointer(),
		Signal: e.Signal, Target: e.Target, Count: e.Count, Reason: e.Reason,
	}
}

// seconds is a duration in JSON; nil is left out.
func seconds(d runlog.Opt[time.Duration]) *limit.Seconds { return (*limit.Seconds)(d.Pointer()) }
