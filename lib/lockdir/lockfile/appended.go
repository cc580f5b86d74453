package lockfile

import (
	"cmp"
	"strconv"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// AppendCommand adds the command that the owner has started, unless the lock has
// it. Only under the lock's Guard.
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

// AppendSurvivors adds members of the owner's job before they are signalled, except those that
// the lock already has. If they do not fit, it adds one line that says there are more. Only under
// the lock's Guard.
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

// unknown returns the members that the lock does not have yet.
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

// append adds whole lines in one write. It first cuts off what an earlier append left unfinished,
// and it cuts off what it cannot finish itself. The mtime stays, as it says when the lock was put
// in place. While this process has the Guard, no other process changes the file, so the content is
// what was read when the Guard was taken, and what was appended since.
func (a *Active) append(lines []byte) error {
	if a.whole < a.st.Size {
		if err := a.truncate(a.whole); err != nil {
			return err
		}
	}
	err := a.changed(func() error {
		failed := a.write(lines)
		if failed != nil {
			_ = a.truncate(a.whole) // else an unfinished line stays, which is ignored
		}
		return failed
	})
	if err == nil {
		a.whole += int64(len(lines))
	}
	return err
}

// Withdraw takes back what was appended since the Guard was taken, when the lock was read.
func (a *Active) Withdraw() error {
	if a.whole == a.seen {
		return nil
	}
	if err := a.changed(func() error { return a.truncate(a.seen) }); err != nil {
		return err
	}
	return a.load()
}

// changed calls change, and keeps the file's mtime.
func (a *Active) changed(change func() error) error {
	created := a.Modified()
	failed := change()
	restored := sysfile.Retry(func() error { return setModified(a.fd, created) })
	return cmp.Or(failed, a.wrap(restored), a.stat())
}

func (a *Active) truncate(size int64) error {
	return a.wrap(sysfile.Retry(func() error { return unix.Ftruncate(a.fd, size) }))
}

// Job is what has to be ended for this lock: its owner and all that is known to belong to it. If
// the owner started its command at a gate, the process that waited at the gate is the command.
func (a *Active) Job() process.Job {
	job := a.Record.KnownJob(int(a.st.Uid)) // only this user's processes may be ended
	if a.Appended.Command.PID != 0 {
		job.Command = a.Appended.Command
	}
	job.Survivors, job.Uncounted = a.Appended.Survivors, a.Appended.Uncounted
	return job
}

// InUse says which process proves that the lock is in use, and how to end it; "" where all are
// dead or cannot be proved alive.
func (a *Active) InUse() string {
	lives := "its owner lives (process " + strconv.Itoa(a.Record.Owner.PID) + ")"
	cure := "; to end it: adlock stop " + a.File.Called()
	if a.File.Name.IsSlot() {
		cure = "; to end it: adlock stop " + string(a.Record.Atom.Name())
	}
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
