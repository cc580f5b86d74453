package supervise

import (
	"adlock/lib/killer"
	"adlock/lib/process"
)

// members returns the living processes of the job.
func (p place) members() ([]process.Entry, error) { return killer.Descendants(p.groupIsJob()) }

// groupIsJob says whether what is in the group that this process leads
// belongs to the job. On a terminal the group may be a pipeline's (`adlock run …
// | less`): there only descendants do, which on Linux are all of the job, as no
// orphan is lost.
func (p place) groupIsJob() bool { return !p.terminal }
