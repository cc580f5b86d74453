package process

// supervisorName is what a process calls itself that passes signals on to a job,
// in place of its program's name. Who signals all of a larger job that has such a
// process in it knows by that what is signalled already: each process is to get
// each signal once. A process that only pretends gains nothing by it: KILL does
// not ask.
const supervisorName = "adlock: run"

func (e entry) supervises() bool { return e.command == supervisorName }

// Supervises tells whether the process passes on to its descendants what it is
// told.
func (m Member) Supervises() bool { return m.Command == supervisorName }

// passesOn tells whether m supervises, and something of its job lives. To end it
// then, or have it pass signals on, is not needed: its job is a part of this one.
func (h *hunt) passesOn(m *member) bool {
	if !m.entry.supervises() {
		return false
	}
	for _, other := range h.order {
		if other.entry.ppid == m.pid && !other.gone {
			return true
		}
	}
	return false
}
