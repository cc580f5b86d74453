package locker

import (
	"slices"
	"strconv"
	"time"

	"adlock/lib/atom"
	"adlock/lib/killer"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// TakeFile locks the file beside the atom, unless o is a denial. It returns Busy if another process locked the file.
func (r *Request) TakeFile(o Outcome, err error) (Outcome, error) {
	if err != nil || o.Verdict != Acquired {
		return o, err
	}
	free, err := r.Flock.TryLock()
	if !free && err == nil {
		o = r.fileTaken()
	}
	return o, err
}

// FileBefore locks the file before the newcomer ends the job in v or replaces its lock: a newcomer that the file
// denies must do neither. If the job itself holds the file, the end of the job frees it. An empty verdict is no denial.
func (r *Request) FileBefore(v *View, step policy.Step, readers func(atom.Name) []process.Job) (Outcome, error) {
	if step != policy.Expire && step != policy.Reclaim {
		return Outcome{}, nil
	}
	free, err := r.Flock.TryLock()
	if free || err != nil || r.FileIsIn(append(readers(r.Atom.Name()), v.Job)...) { // readers count too: each is ended as well, or denies the newcomer
		return Outcome{}, err
	}
	return r.fileTaken(), nil
}

// FileIsIn reports whether a process of one of the jobs has locked the file.
func (r *Request) FileIsIn(jobs ...process.Job) bool {
	return slices.ContainsFunc(jobs, func(job process.Job) bool {
		members, err := killer.Members(job)
		return err == nil && slices.ContainsFunc(members, func(m process.Entry) bool { return r.Flock.IsHeldIn(m.PID) })
	})
}

// ForeseeFile returns d, or Busy if d grants the atom but the file is locked, and not by one of the jobs to be ended.
func (r *Request) ForeseeFile(d policy.Decision, jobs ...process.Job) policy.Decision {
	if !d.Step.Granted() || !r.Flock.IsTaken() || r.FileIsIn(jobs...) {
		return d
	}
	return d.Because(policy.Busy, fileHeld(r.Flock.Path, r.Flock.Holder().PID))
}

func fileHeld(path string, holder int) string {
	if holder == 0 {
		return path + " is locked"
	}
	return path + " is locked by " + processOn(holder, "")
}

// fileTaken returns the outcome if another process holds the file. As the file has no token, the pid of the process
// that locked it, together with the path, stands for one.
func (r *Request) fileTaken() Outcome {
	holder := r.Flock.Holder()
	v := View{Active: policy.Active{Held: true, Owner: policy.Untouched}, File: r.Flock.Path}
	if holder.PID != 0 && process.IsAncestor(holder.PID) {
		v.Active.Owner = policy.Ancestor
	}
	v.Record.Owner, v.Record.Atom = holder, r.Atom
	v.Record.Token = "flock:" + strconv.Itoa(r.Flock.Locker()) + ":" + v.File
	d := policy.Decide(r.Terms(), policy.Situation{}).Because(policy.Busy, fileHeld(v.File, holder.PID))
	d.Active = v.Active
	o := r.Denied(d, &v)
	o.Recheck, o.found.Age = 0, runlog.Opt[time.Duration]{}
	return o
}

// IsFile reports whether it is the file, and not a lock, that denies the newcomer the atom.
func (o Outcome) IsFile() bool { return o.inWay.File != "" }

func (rec Recorder) seeFile(r *Request, o *Outcome) {
	first := time.Now()
	for e := range rec.Log.Newest(noticeBytes) {
		if !rec.isOf(&e, r.Atom) {
			continue
		}
		if e.Kind == runlog.Acquire { // the file was free
			break
		}
		if e.OwnerToken == o.inWay.Record.Token {
			first = e.Time
		}
	}
	o.inWay.Active.Age = time.Since(first)
}
