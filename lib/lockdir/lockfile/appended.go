package lockfile

import (
	"cmp"
	"strconv"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// AppendCommand adds the command that the owner has started, but not twice. The caller holds the lock's Guard.
func (a *Active) AppendCommand(id process.Identity) error {
	if known := a.Appended.Command; known.PID == id.PID && known.Start == id.Start && known.Inode == id.Inode {
		return nil
	}
	if err := a.append([]byte(record.CommandLine(id))); err != nil {
		return err
	}
	a.Appended.Command = id
	return nil
}

// AppendSurvivors adds those members that the lock does not name yet or, if they do not fit, one line that says
// so. The caller holds the lock's Guard.
func (a *Active) AppendSurvivors(members []process.Identity) error {
	fresh := a.unknown(members)
	if len(fresh) == 0 {
		return nil
	}
	var text string
	for i, id := range fresh {
		text += record.SurvivorLine(len(a.Appended.Survivors)+1+i, id)
	}
	fits := a.st.Size+int64(len(text)+len(record.ManySurvivors)) <= record.Longest
	if !fits {
		text, fresh = record.ManySurvivors, nil
	}
	if !fits && a.Appended.Uncounted {
		return nil
	}
	if err := a.append([]byte(text)); err != nil {
		return err
	}
	a.Appended.Uncounted = a.Appended.Uncounted || !fits
	a.Appended.Survivors = append(a.Appended.Survivors, fresh...)
	return nil
}

func (a *Active) unknown(members []process.Identity) []process.Identity {
	of := func(id process.Identity) [3]uint64 { return [...]uint64{uint64(id.PID), id.Start, id.Inode} }
	known := map[[3]uint64]bool{of(a.Record.Owner): true, of(a.Record.Job): true, of(a.Appended.Command): true}
	for _, id := range a.Appended.Survivors {
		known[of(id)] = true
	}
	var fresh []process.Identity
	for _, id := range members {
		if !known[of(id)] {
			fresh = append(fresh, id)
			known[of(id)] = true
		}
	}
	return fresh
}

// append adds whole lines in one write, and cuts off a line that an earlier append or this one left
// unfinished. It keeps the mtime, which is when the lock was put in place.
func (a *Active) append(lines []byte) error {
	if a.whole < a.st.Size {
		if err := a.truncate(a.whole); err != nil {
			return err
		}
	}
	err := a.changed(func() error {
		failed := a.write(lines)
		if failed != nil {
			_ = a.truncate(a.whole) // if this fails too, an unfinished line stays, which load ignores
		}
		return failed
	})
	if err == nil {
		a.whole += int64(len(lines))
	}
	return err
}

// Withdraw removes what was appended since the lock was read under its Guard.
func (a *Active) Withdraw() error {
	if a.whole == a.seen {
		return nil
	}
	if err := a.changed(func() error { return a.truncate(a.seen) }); err != nil {
		return err
	}
	return a.load()
}

func (a *Active) changed(change func() error) error {
	created := a.Modified()
	failed := change()
	restored := sysfile.Retry(func() error { return setModified(a.fd, created) })
	return cmp.Or(failed, a.wrap(restored), a.stat())
}

func (a *Active) truncate(size int64) error {
	return a.wrap(sysfile.Retry(func() error { return unix.Ftruncate(a.fd, size) }))
}

// Job returns the owner's job, which a takeover has to end. Its command is the one that was appended, else the
// process in Record.Job, which waited until the lock was in place.
func (a *Active) Job() process.Job {
	job := a.Record.KnownJob(int(a.st.Uid)) // only processes of the user that owns the file may be ended
	if a.Appended.Command.PID != 0 {
		job.Command = a.Appended.Command
	}
	job.Survivors, job.Uncounted = a.Appended.Survivors, a.Appended.Uncounted
	return job
}

// InUse returns why the lock is in use and, if adlock can end the job, how; "" if the job is not known to live.
func (a *Active) InUse() string {
	lives := "its owner lives (process " + strconv.Itoa(a.Record.Owner.PID) + ")"
	lock := a.File
	if lock.Name.IsSlot() {
		lock = a.Record.Lock()
	}
	cure := "; to end it: adlock stop " + fault.Quoted(a.dir.Path(lock.String()))
	switch job := a.Job(); {
	case a.Content == record.Empty, a.Content == record.Damaged:
		return ""
	case a.Content == record.PIDOnly:
		if process.PIDLives(a.Record.Owner.PID) {
			return lives
		}
		return ""
	case job.Owner.Life() == process.Alive:
		return lives + cure
	case job.Alive():
		return "its owner is dead, but processes of its job are left" + cure
	}
	return ""
}
