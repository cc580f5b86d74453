package protocol

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// expireAfter is that of every contender.
const expireAfter = time.Second

// checkTime limits porcupine's search in the history of one atom. Unknown is a failure.
const checkTime = 2 * time.Minute

// check returns what is wrong with the events.
func check(events []event) error {
	list, ends, err := attempts(events)
	if err != nil {
		return err
	}
	var wrong []error
	for _, e := range events {
		if e.kind == clash {
			wrong = append(wrong, fmt.Errorf("two jobs of one atom at once: %v", e))
		}
	}
	wrong = append(wrong, unjust(list, ends)...)
	atoms := map[string][]*attempt{}
	for _, a := range list {
		atoms[a.atom] = append(atoms[a.atom], a)
	}
	for atom, list := range atoms {
		wrong = append(wrong, linearize(atom, list))
	}
	return errors.Join(wrong...)
}

// unjust finds contenders that another contender ended though they held no lock, or had held it for
// less than ExpireAfter.
func unjust(list []*attempt, ends map[string]event) (wrong []error) {
	latest := map[string]*attempt{}
	for _, a := range list {
		latest[a.begun.contender()] = a
	}
	for contender, e := range ends {
		a := latest[contender]
		switch {
		case e.word(0) != signaled:
		case a == nil || a.over.kind == end && !supervised(contender):
			wrong = append(wrong, fmt.Errorf("ended, and held no lock: %v", e))
		case e.at-a.begun.at < expireAfter-slack:
			wrong = append(wrong, fmt.Errorf("ended before ExpireAfter: %v, %v", a.begun, e))
		}
	}
	return wrong
}

// linearize looks for an order of the operations that the model allows.
func linearize(atom string, list []*attempt) error {
	var operations []porcupine.Operation
	for _, a := range list {
		operations = append(operations, a.operations()...)
	}
	excuse(operations, list)
	result, info := porcupine.CheckOperationsVerbose(model, operations, checkTime)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("atom %s: no answer within %v", atom, checkTime)
	}
	return fmt.Errorf("atom %s: no order of its operations explains the events; the farthest ends with\n%s", atom, farthest(info))
}

// excuse marks denials as busy at times when there may have been no owner: a newcomer that its
// second look denies holds the lock for a moment, and others find the atom busy.
func excuse(operations []porcupine.Operation, list []*attempt) {
	var brief []*attempt
	for _, a := range list {
		if a.verdict == tooSoon || a.verdict == failed && a.taken == nil {
			brief = append(brief, a)
		}
	}
	for i, found := range operations {
		o := found.Input.(operation)
		if o.kind != opBusy {
			continue
		}
		for _, a := range brief {
			o.excused = o.excused || a.elapsed > 0 && a.begun.place < found.Return && found.Call < a.over.place
		}
		operations[i].Input = o
	}
}

// farthest is the end of the longest order found, and the operation that did not fit.
func farthest(info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	var text strings.Builder
	for _, o := range longest[max(0, len(longest)-12):] {
		fmt.Fprintf(&text, "  %v (events %d to %d)\n", o.Input, o.Call, o.Return)
	}
	return text.String()
}
