package lock

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// Appended is what was added to an active lock since it was put in place: whole
// lines in one write each, so that nobody ever meets half a lock, and never by a
// rename, which would be a takeover.
type Appended struct {
	Command   process.Identity   // what `adlock run` has started; PID 0: nothing yet
	Survivors []process.Identity // members of a job that somebody has begun to end
	Uncounted bool               // and more of them than there was room for
}

// maxRecord is how large a lock with all that was appended may become.
const maxRecord = 64 << 10

// The keys of what is appended: one line for each process, with its pid, start,
// inode and session, and the pid and time namespace of the writer.
const (
	commandKey     = "command"
	survivorPrefix = "survivor."
	uncountedLine  = "survivor=many\n"
)

// AppendCommand adds the command that the owner has started, unless the lock has
// it. Only under the lock's Guard.
func (a *Active) AppendCommand(id process.Identity) error {
	if known := a.Appended.Command; known.PID == id.PID && known.Start == id.Start && known.Inode == id.Inode {
		return nil
	}
	var w writer
	w.process(commandKey, id)
	if err := a.append([]byte(w.String())); err != nil {
		return err
	}
	a.Appended.Command = id
	return nil
}

// AppendSurvivors adds members of the owner's job before they are signalled.
// Those that the lock has already are left out; where they do not fit, only that
// there are more is added. Only under the lock's Guard.
func (a *Active) AppendSurvivors(members []process.Identity) error {
	fresh := a.unknown(members)
	if len(fresh) == 0 || a.Appended.Uncounted {
		return nil
	}
	var w writer
	for i, id := range fresh {
		w.process(survivorPrefix+strconv.Itoa(len(a.Appended.Survivors)+1+i), id)
	}
	text, fits := w.String(), a.st.Size+int64(w.Len())+int64(len(uncountedLine)) <= maxRecord
	if !fits {
		text = uncountedLine
	}
	if err := a.append([]byte(text)); err != nil {
		return err
	}
	if a.Appended.Uncounted = !fits; fits {
		a.Appended.Survivors = append(a.Appended.Survivors, fresh...)
	}
	return nil
}

// unknown returns those of whom the lock does not know.
func (a *Active) unknown(members []process.Identity) []process.Identity {
	type key struct {
		pid          int
		start, inode uint64
	}
	of := func(id process.Identity) key { return key{id.PID, id.Start, id.Inode} }
	known := map[key]bool{of(a.Record.Owner): true, of(a.Record.Job): true, of(a.Appended.Command): true}
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

func (w *writer) process(key string, id process.Identity) {
	values := []uint64{uint64(id.PID), id.Start, id.Inode, uint64(id.SID), id.PIDNS, id.TimeNS}
	text := make([]string, len(values))
	for i, value := range values {
		text[i] = strconv.FormatUint(value, 10)
	}
	w.text(key, strings.Join(text, " "))
}

// append adds whole lines in one write. What an earlier append left unfinished
// goes first, and so does what this one could not finish. The mtime stays, as it
// says when the lock was put in place.
func (a *Active) append(lines []byte) error {
	if err := a.stat(); err != nil {
		return err
	}
	whole, err := a.wholeLines()
	if err != nil {
		return err
	}
	if whole < a.st.Size {
		if err := a.truncate(whole); err != nil {
			return err
		}
	}
	created := a.modified()
	failed := a.write(lines)
	if failed != nil {
		_ = a.truncate(whole) // else an unfinished line stays, which is ignored
	}
	restored := retry(func() error { return setModified(a.fd, created) })
	return cmp.Or(failed, a.wrap(restored), a.stat())
}

// wholeLines is how much of the file is whole lines.
func (a *Active) wholeLines() (int64, error) {
	content, err := a.read()
	return int64(bytes.LastIndexByte(content, '\n') + 1), err
}

func (a *Active) truncate(size int64) error {
	return a.wrap(retry(func() error { return unix.Ftruncate(a.fd, size) }))
}

// parseAppended reads what follows a record. An unfinished last line says
// nothing; what is not understood makes the lock Damaged. The processes are of the
// owner's boot: they were seen where it was.
func parseAppended(tail []byte, owner process.Identity) (a Appended, ok bool) {
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1]
	for line := range strings.Lines(string(tail)) {
		if line == uncountedLine {
			a.Uncounted = true
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		id, ok := parseProcess(value, owner)
		switch {
		case !ok:
			return Appended{}, false
		case key == commandKey:
			a.Command = id
		case strings.HasPrefix(key, survivorPrefix):
			a.Survivors = append(a.Survivors, id)
		default:
			return Appended{}, false
		}
	}
	return a, true
}

func parseProcess(text string, owner process.Identity) (process.Identity, bool) {
	fields := strings.Split(text, " ")
	var n [6]uint64
	if len(fields) != len(n) {
		return process.Identity{}, false
	}
	for i, field := range fields {
		var err error
		if n[i], err = strconv.ParseUint(field, 10, 64); err != nil {
			return process.Identity{}, false
		}
	}
	if n[0] == 0 || n[0] > 1<<30 {
		return process.Identity{}, false
	}
	return process.Identity{
		PID: int(n[0]), Start: n[1], Inode: n[2], SID: int(n[3]), PIDNS: n[4], TimeNS: n[5],
		Boot: owner.Boot, Machine: owner.Machine,
	}, true
}

// Job is what there is to end for this lock: its owner and all that is known to
// belong to it. Where the owner waited at a gate, what waited there is its command.
func (a *Active) Job() process.Job {
	job := a.Record.KnownJob(a.UID())
	if a.Appended.Command.PID != 0 {
		job.Command = a.Appended.Command
	}
	job.Survivors, job.Uncounted = a.Appended.Survivors, a.Appended.Uncounted
	return job
}

// KnownJob is Job of a record by itself; uid owns the lock, -1 where no file
// condemns anybody.
func (r Record) KnownJob(uid int) process.Job {
	return process.Job{Owner: r.Owner, Command: r.Job, FileUID: uid, Supervised: r.Supervised}
}
