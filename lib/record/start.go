package record

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"adlock/lib/process"
)

// Start is when a run was asked for, on the boottime clock of a boot and time namespace.
type Start struct {
	Boottime time.Duration
	boot     string
	timeNS   uint64
}

// IsHere reports whether the start was recorded in this boot and time namespace.
func (s Start) IsHere() bool {
	here := process.Here()
	return s.boot != "" && s.boot == here.Boot && s.timeNS == here.TimeNS
}

// Later returns the later of two starts; if they cannot be compared, s.
func (s Start) Later(other Start) Start {
	if s.boot == other.boot && s.timeNS == other.timeNS && other.Boottime > s.Boottime {
		return other
	}
	return s
}

// String returns the start as it is written in last locks.
func (s Start) String() string {
	return strconv.FormatInt(s.Boottime.Nanoseconds(), 10) + " " + strconv.FormatUint(s.timeNS, 10) + " " + s.boot
}

func parseStart(text string) (s Start, err error) {
	words := strings.Fields(text)
	if len(words) != 3 {
		return s, strconv.ErrSyntax
	}
	boottime, err := strconv.ParseInt(words[0], 10, 64)
	timeNS, failed := strconv.ParseUint(words[1], 10, 64)
	return Start{Boottime: time.Duration(boottime), timeNS: timeNS, boot: words[2]}, cmp.Or(err, failed)
}
