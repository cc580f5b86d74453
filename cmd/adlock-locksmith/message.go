package main

import (
	"encoding/json"
	"io"

	"adlock/lib/fault"
	"adlock/lib/lease/listing"
	"adlock/lib/locker"
)

// message is what a holder sends to its asker: one JSON object for each message.
type message struct {
	Waits bool // this is not the answer yet: the holder waits for the process Blocker on Node, or still tries to release
	Lost  bool // this comes after the answer: the lock is lost, and the program is being ended

	Verdict      locker.Verdict   `json:",omitempty"`
	Reason       string           `json:",omitempty"`
	Figures      string           `json:",omitempty"`
	Token, Fence string           `json:",omitempty"`
	Blocker      int              `json:",omitempty"`
	Node         string           `json:",omitempty"`
	Error        *listing.Failure `json:",omitempty"`
}

func messageOf(o locker.Outcome, err error) message {
	return message{
		Verdict: o.Verdict, Reason: o.Reason, Figures: o.Figures, Token: o.Token, Fence: o.Fence,
		Blocker: o.Blocker, Node: o.Node, Error: listing.FailureOf(err),
	}
}

func (m message) outcome() locker.Outcome {
	return locker.Outcome{Verdict: m.Verdict, Reason: m.Reason, Figures: m.Figures, Token: m.Token, Fence: m.Fence, Blocker: m.Blocker, Node: m.Node}
}

func (m message) send(to io.Writer) error { return json.NewEncoder(to).Encode(m) }

func readAnswer(from *json.Decoder, waits func(locker.Outcome)) (locker.Outcome, error) {
	for {
		var m message
		if err := from.Decode(&m); err != nil {
			return locker.Outcome{}, fault.New(fault.System, "holder", "died before it had an answer")
		}
		if !m.Waits {
			return m.outcome(), m.Error.Err()
		}
		waits(m.outcome())
	}
}
