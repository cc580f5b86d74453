package process

// supervisorName is the process name of a supervisor, which forwards signals to its job. A newcomer
// that ends a larger job recognises a supervisor in it by this name, and so sends each process each
// signal once. A process that takes the name without being a supervisor gains nothing: it gets KILL
// all the same.
const supervisorName = "adlock: run"

// Supervises tells whether the process forwards signals to its descendants.
func (e Entry) Supervises() bool { return e.Command == supervisorName }
