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

// HasTick reports whether the tick of the atom NAME was claimed.
func (d *Dir) HasTick(name atom.Name, tick policy.Tick) (bool, error) {
	var st unix.Stat_t
	file := name.Tick(tick.Period, tick.Number)
	err := sysfile.Lstatat(d.fd, file, &st)
	return err == nil, d.wrap(file, sysfile.IgnoreMissing(err))
}

// ClaimTick makes the tick's file, which can be made only once, and removes those that have expired.
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
	_ = d.RemoveTicks(name, tick.Outlived) // if it fails, the next claim removes them
	return true, nil
}

// RemoveTick takes a claim back; it does nothing where there is none.
func (d *Dir) RemoveTick(name atom.Name, tick policy.Tick) error {
	if !tick.Asked() {
		return nil
	}
	return d.remove(name.Tick(tick.Period, tick.Number))
}

// RemoveTicks forgets the atom's ticks of which forgotten is true.
func (d *Dir) RemoveTicks(name atom.Name, forgotten func(period time.Duration, number int) bool) error {
	files, failed := d.Files(atom.Tick)
	for _, f := range files {
		if f.Name == name && forgotten(f.Period, f.Number) {
			failed = errors.Join(failed, d.remove(f.String()))
		}
	}
	return failed
}
