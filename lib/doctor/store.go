package doctor

import (
	"time"

	"adlock/lib/limit"
	"adlock/lib/policy"
)

func (m *Machine) store() []Finding {
	const what, cure = "store", "no job of this store runs until this is mended"
	if m.Remote == "" || m.TryStore == nil {
		return nil
	}
	t, err := m.TryStore()
	if t.Answer == 0 && err != nil {
		return []Finding{fail(what, err.Error(), cure)}
	}
	all := []Finding{fine(what, m.Remote+" answers after "+t.Answer.Round(time.Millisecond).String()+", and lets this user in")}
	if err != nil {
		return append(all, fail("lease", err.Error(), cure))
	}
	all = append(all, fine("lease", "one of "+limit.Format(t.Lease)+" was taken, renewed and given back"))
	if t.Ahead.Abs() > policy.FutureSlack {
		return append(all, warn("store clock", "the times in the store are "+ahead(t.Ahead)+" this machine's", "set the clocks of all machines by NTP: until then intervals and ages may be wrong by as much"))
	}
	return append(all, fine("store clock", "the times in the store agree with this machine's"))
}
