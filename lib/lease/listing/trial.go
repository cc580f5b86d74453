package listing

import (
	"encoding/json"
	"io"
	"time"

	"adlock/lib/fault"
)

// Trial is the result of lease.Locker.Try, which takes a lease, renews it and gives it back, for the doctor.
type Trial struct {
	Answer time.Duration // how long the first answer took, with the connection; 0: there was none
	Lease  time.Duration // the length of the lease that was granted
	Ahead  time.Duration // how far the times in the store, or its clock, are ahead of this machine's; below 0: behind
}

type trial struct {
	Trial
	Error *Failure `json:",omitempty"`
}

func WriteTrial(to io.Writer, t Trial, failed error) error {
	return json.NewEncoder(to).Encode(trial{t, FailureOf(failed)})
}

// ReadTrial returns a trial, and the error that ended it.
func ReadTrial(from io.Reader) (Trial, error) {
	var in trial
	if err := json.NewDecoder(from).Decode(&in); err != nil {
		return Trial{}, fault.Wrap("the trial of the store", err)
	}
	return in.Trial, in.Error.Err()
}
