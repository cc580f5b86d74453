package process

import (
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// initialTimeNS is TIME_NS_INIT_INO of linux/nsfs.h: the namespace without an offset.
const initialTimeNS = 0xeffffffa

// BeforeBoot tells whether the kernel's wall clock showed that time before this boot. It is false if that
// is not certain.
//
// The time of the boot is now less the uptime, unless the clock was set since. So a second reading is
// taken from the device nodes, which the kernel makes as it boots, and a container's runtime as the
// container starts. Relied on: after that, the clock was set at most from one of these two readings to the
// other. In a time namespace with an offset the uptime is another.
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

// before tells whether a time is earlier than the boot: now is one uptime after began, and a file
// that was made before the clock was set has a time within one uptime of the boot by the clock then.
func before(at time.Time, up time.Duration, began, then time.Time) bool {
	set := at.After(then.Add(-coarse)) && at.Before(then.Add(up+coarse))
	return at.Before(began.Add(-coarse)) && !set
}
