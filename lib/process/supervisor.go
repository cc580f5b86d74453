package process

// supervisorName is the process name of a supervisor, which forwards signals to its job. A newcomer that ends
// a larger job sends it no signal before KILL, so that no process gets a signal twice. A process that takes
// the name gains nothing: it gets KILL all the same.
const supervisorName = "adlock: run"

// Supervises reports whether the process forwards signals to its descendants.
func (e Entry) Supervises() bool { return e.Command == supervisorName }
