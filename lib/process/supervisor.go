package process

// supervisorName is the name that a process which forwards signals to a job takes in place of its
// program's name. A newcomer that ends a larger job with such a process in it knows from the name
// that the process forwards signals: each process is to get each signal once. A process that only
// pretends gains nothing: KILL does not ask.
const supervisorName = "adlock: run"

// Supervises tells whether the process forwards signals to its descendants.
func (e Entry) Supervises() bool { return e.Command == supervisorName }
