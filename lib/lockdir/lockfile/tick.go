package lockfile

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/policy"
	"adlock/lib/sysfile"
)

// HasTick reports whether the tick of the atom NAME was claimed.
func (d *Dir) HasTick(name atom.Name, tick policy.Tick) (bool, error) {
	var st unix.Stat_t
	file := name.Tick(tick.Period, tick.Number)
	err := sysfile.Lstatat(d.fd, file, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, d.wrap(file, err)
}

// ClaimTick makes the tick's file, which can be made only once, and removes those that have
// expired. False: the tick was claimed before.
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
	_ = d.removeTicks(name, tick.Outlived) // if it fails, the next claim removes them
	return true, nil
}

// RemoveTick takes a claim back; it does nothing where there is none.
func (d *Dir) RemoveTick(name atom.Name, tick policy.Tick) error {
	if !tick.Asked() {
		return nil
	}
	return d.removeTick(name.Tick(tick.Period, tick.Number))
}

// RemoveTicks forgets all ticks of the atom NAME.
func (d *Dir) RemoveTicks(name atom.Name) error {
	return d.removeTicks(name, func(time.Duration, int) bool { return true })
}

func (d *Dir) removeTicks(name atom.Name, these func(period time.Duration, number int) bool) error {
	files, failed := d.Files(atom.Tick)
	for _, f := range files {
		if f.Name == name && these(f.Period, f.Number) {
			failed = errors.Join(failed, d.removeTick(f.String()))
		}
	}
	return failed
}

func (d *Dir) removeTick(file string) error {
	err := sysfile.Unlinkat(d.fd, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fault.Wrap(d.Path(file), err)
}
