package limit

import (
	"strconv"
	"time"
)

// Seconds is a duration for programs: seconds with as many decimals as needed, or "never".
type Seconds time.Duration

// Append appends s to b, exactly.
func (s Seconds) Append(b []byte) []byte {
	if s == Seconds(Never) {
		return append(b, "never"...)
	}
	ns := uint64(s)
	if s < 0 {
		b = append(b, '-')
		ns = -ns
	}
	b = strconv.AppendUint(b, ns/1e9, 10)
	if ns %= 1e9; ns == 0 {
		return b
	}
	b = append(b, '.')
	for unit := uint64(1e8); ns > 0; unit /= 10 {
		b = append(b, '0'+byte(ns/unit))
		ns %= unit
	}
	return b
}

// String is what Append appends.
func (s Seconds) String() string { return string(s.Append(nil)) }

// MarshalJSON is s as a number, or as the text "never".
func (s Seconds) MarshalJSON() ([]byte, error) {
	if s == Seconds(Never) {
		return []byte(`"never"`), nil
	}
	return s.Append(nil), nil
}
