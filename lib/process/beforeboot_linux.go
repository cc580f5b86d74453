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
// The present time minus the uptime is the time of the boot, unless the clock was set after the boot. The mtime of
// /dev/null is a second reading: the kernel makes device nodes as it boots, a container's runtime as the container
// starts. BeforeBoot assumes that the clock was never set except from one of these readings to the other. A time
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

// coarse is longer than a leap second, and longer than the fraction that a file system cuts off a time.
const coarse = 2 * time.Second

// before reports whether at is earlier than began, the time of the boot by the present clock, by more than coarse.
// then is the time of the boot by the clock of that moment. For times from then to then+up the result is false: such a
// time may lie in this boot, if the clock was set later.
func before(at time.Time, up time.Duration, began, then time.Time) bool {
	set := at.After(then.Add(-coarse)) && at.Before(then.Add(up+coarse))
	return at.Before(began.Add(-coarse)) && !set
}
