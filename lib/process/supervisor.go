package process

// supervisorName is the process name of a supervisor, which forwards signals to its job. If that job is a part
// of a larger one that is ended, the supervisor gets only KILL while it has a child, so that no process gets
// a signal twice. A process that takes the name gains nothing: it gets KILL all the same.
const supervisorName = "adlock: run"

// Supervises reports whether the process forwards signals to its descendants.
func (e Entry) Supervises() bool { return e.Command == supervisorName }
