package main

import (
	"slices"
	"strconv"
	"strings"

	"adlock/lib/insight/terminal"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// strays returns the slots that no row shows: their atoms are gone, cannot be read or are left out.
func strays(all []locker.Slot, rows []*row) []locker.Slot {
	return slices.DeleteFunc(all, func(s locker.Slot) bool {
		return slices.ContainsFunc(rows, func(r *row) bool {
			return r.Name.SlotPrefix() == s.Name.SlotPrefix() && (r.isSemaphore() || r.Slot == s.Number && r.Owner == s.Record.Owner.PID)
		})
	})
}

func (q *query) strayText(slots []locker.Slot, rows []*row) string {
	var w strings.Builder
	for _, s := range slots {
		ofRow := func(r *row) bool { return r.Name == s.Record.Atom.Name() }
		if q.atom == "" && len(q.args) == 0 || slices.ContainsFunc(rows, ofRow) {
			w.WriteString(folded(slotText(s)))
		}
	}
	return w.String()
}

func slotText(s locker.Slot) string {
	program, host, _ := strings.Cut(strings.TrimSuffix(s.Name.Prefix(), "."), ".")
	switch a := s.Record.Atom; {
	case a.IsNamed():
		program, host = a.Operand, a.Host
	case a.Program != "":
		program, host = a.Program, a.Host
	}
	text := "slot " + strconv.Itoa(s.Number) + " of " + terminal.Clean(program) + " on " + terminal.Clean(host) +
		": held by "
	if s.Node != "" {
		text += terminal.Clean(runlog.On(s.Record.Owner.PID, s.Node))
	} else {
		text += ofUser(s.Record.Owner.PID, s.Record.Owner.UID)
	}
	if s.Active.Owner == policy.Gone {
		text += ", which is dead: the next newcomer takes it"
	}
	return text
}
