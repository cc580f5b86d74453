package process

// supervisorName is what a process calls itself that passes signals on to a job,
// in place of its program's name. What signals all of a larger job that has such a
// process in it knows by that what is signalled already: each process is to get
// each signal once. A process that only pretends gains nothing by it: KILL does
// not ask.
const supervisorName = "adlock: run"

// Supervises tells whether the process passes on to its descendants what it is
// told.
func (e Entry) Supervises() bool { return e.Command == supervisorName }
