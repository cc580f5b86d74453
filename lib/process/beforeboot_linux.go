package process

import (
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// initialTimeNS is TIME_NS_INIT_INO of linux/nsfs.h: the namespace without an offset.
const initialTimeNS = 0xeffffffa

// BeforeBoot reports whether at, a time of the kernel's wall clock, was before this boot; false if not certain.
//
// The time of the boot is now less the uptime, unless the clock was set since. A second reading is the time
// of /dev/null: the kernel makes device nodes as it boots, a container's runtime as the container starts.
// BeforeBoot assumes that since then the clock was at most set from one of the readings to the other. A time
// namespace may shift the uptime, so BeforeBoot is false in all but the initial one.
func BeforeBoot(at time.Time) bool {
	where, err := here()
	if err != nil || where.TimeNS != 0 && where.TimeNS != initialTimeNS {
		return false
	}
	up := Boottime()
	began := time.Now().Add(-up)
	var st unix.Stat_t
	if sysfile.Retry(func() error { return unix.Stat("/dev/null", &st) }) != nil {
		return false
	}
	return before(at, up, began, time.Unix(st.Mtim.Unix()))
}

// coarse is more than a file system rounds a time down by, and more than a leap second.
const coarse = 2 * time.Second

// before reports whether at is earlier than began, which is the boot by the clock as it is now. It is false for
// the times from then to then+up, as they may be of this boot, from before the clock was set: then is the boot by
// the clock as it was at the boot.
func before(at time.Time, up time.Duration, began, then time.Time) bool {
	set := at.After(then.Add(-coarse)) && at.Before(then.Add(up+coarse))
	return at.Before(began.Add(-coarse)) && !set
}
