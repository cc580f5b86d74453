package process

// supervisorName is the process name of a supervisor, which forwards signals to its job. By it a newcomer
// that ends a larger job sends each process each signal once. A process that takes the name gains nothing:
// it gets KILL all the same.
const supervisorName = "adlock: run"

// Supervises tells whether the process forwards signals to its descendants.
func (e Entry) Supervises() bool { return e.Command == supervisorName }
