package supervise

import (
	"adlock/lib/killer"
	"adlock/lib/process"
)

func (p place) members() ([]process.Entry, error) { return killer.Descendants(p.groupIsJob()) }

// groupIsJob reports whether this process leads its group and the group's members belong to the job. On a
// terminal they do not, as the group may be a pipeline's (`adlock run … | less`): there the job is the descendants.
func (p place) groupIsJob() bool { return p.leads && !p.terminal }
