package lockfile

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/record"
)

// Last reads last.NAME; fs.ErrNotExist if there is none.
func (d *Dir) Last(name atom.Name) (record.Last, error) {
	f, err := d.openFile(name.LastLock(), unix.O_RDONLY)
	if err != nil {
		return record.Last{}, err
	}
	defer f.Close()
	last := record.Last{}
	if f.st.Mtim.Nano() != 0 {
		last.Completed, last.Cut = f.Modified(), cutOff(f.st.Mtim, f.st.Ctim)
	}
	if f.st.Size == 0 {
		return last, nil
	}
	content, err := f.read()
	if err != nil {
		return record.Last{}, err
	}
	if last.Memory, err = record.ParseMemory(content); err != nil {
		return record.Last{Damaged: true}, nil
	}
	return last, nil
}

// cutOff returns a second if the file system keeps only whole seconds (ext3, HFS+, some file servers). Others
// show a fraction at least in the ctime, which no program can set.
func cutOff(mtime, ctime unix.Timespec) time.Duration {
	if mtime.Nsec == 0 && ctime.Nsec == 0 {
		return time.Second
	}
	return 0
}

// MakeLast creates the last lock of an atom that never completed, unless there is one. It must exist before the
// atom is first taken, or circular waiting could not be broken (the paper's deadlock rule).
func (d *Dir) MakeLast(name atom.Name, memory record.Memory) error {
	return d.placeLast(name, memory, time.Time{}, (*TempFile).Link)
}

// Remember changes the content of a last lock; completed is the mtime to keep. Call it in Marked, under an atom's lock.
func (d *Dir) Remember(name atom.Name, completed time.Time, memory record.Memory) error {
	return d.placeLast(name, memory, completed, (*TempFile).Replace)
}

func (d *Dir) placeLast(name atom.Name, memory record.Memory, completed time.Time, place func(*TempFile, string) error) error {
	temp, err := d.TempFile(memory.Bytes())
	if err != nil {
		return err
	}
	defer temp.Discard()
	if err := temp.setModified(completed); err != nil {
		return err
	}
	if err := place(temp, name.LastLock()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Stamp records that the atom completes now. If the last lock has been deleted, and no newcomer makes it, Stamp does.
func (d *Dir) Stamp(name atom.Name, memory record.Memory) error {
	f, err := d.openFile(name.LastLock(), unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.MakeLast(name, memory); err == nil {
			return d.Stamp(name, memory)
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.touch()
}

// RemoveLast removes the readers' mark and the last lock of an atom without readers; missing ones are no error.
func (d *Dir) RemoveLast(name atom.Name) error {
	return errors.Join(d.remove(name.ReadersMark()), d.remove(name.LastLock()))
}

// LastChanged returns the last lock's ctime, as the mtime is the epoch if the atom never completed.
func (d *Dir) LastChanged(name atom.Name) (time.Time, error) {
	f, err := d.openFile(name.LastLock(), unix.O_RDONLY)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	return time.Unix(f.st.Ctim.Unix()), nil
}
