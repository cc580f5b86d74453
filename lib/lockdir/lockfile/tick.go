package lockfile

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/policy"
	"adlock/lib/sysfile"
)

// HasTick reports whether a run of the atom NAME has claimed the tick.
func (d *Dir) HasTick(name atom.Name, tick policy.Tick) (bool, error) {
	var st unix.Stat_t
	file := name.Tick(tick.Period, tick.Number)
	err := sysfile.Lstatat(d.fd, file, &st)
	return err == nil, d.wrap(file, sysfile.IgnoreMissing(err))
}

// ClaimTick claims the tick by making its file, which only one process can; claimed is false if another was
// faster. After a claim it removes the files of the ticks that this one has outlived.
func (d *Dir) ClaimTick(name atom.Name, tick policy.Tick) (claimed bool, err error) {
	file := name.Tick(tick.Period, tick.Number)
	fd, err := sysfile.Openat(d.fd, file, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, cannotCreate(d.Path(file), err)
	}
	unix.Close(fd)
	ticks, _ := d.Files(atom.Tick)
	_ = d.RemoveTicks(ticks, name, tick.Outlived) // if it fails, the next claim removes them
	return true, nil
}

// RemoveTick takes a claim back. A missing claim is no error, nor is the zero tick.
func (d *Dir) RemoveTick(name atom.Name, tick policy.Tick) error {
	if !tick.Asked() {
		return nil
	}
	return d.remove(name.Tick(tick.Period, tick.Number))
}

func (d *Dir) RemoveTicks(files []atom.File, name atom.Name, forgotten func(period time.Duration, number int) bool) (failed error) {
	for _, f := range files {
		if f.Kind == atom.Tick && f.Name == name && forgotten(f.Period, f.Number) {
			failed = errors.Join(failed, d.remove(f.String()))
		}
	}
	return failed
}
