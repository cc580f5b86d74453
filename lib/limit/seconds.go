package limit

import (
	"bytes"
	"strconv"
	"time"
)

// Seconds is a duration for programs: seconds with as many decimals as needed, or "never".
type Seconds time.Duration

// Append appends s to b without rounding.
func (s Seconds) Append(b []byte) []byte {
	if s == Seconds(Never) {
		return append(b, "never"...)
	}
	ns := uint64(s)
	if s < 0 {
		b = append(b, '-')
		ns = -ns
	}
	b = append(strconv.AppendUint(b, ns/1e9, 10), '.')
	b = append(b, strconv.FormatUint(1e9+ns%1e9, 10)[1:]...)
	return bytes.TrimSuffix(bytes.TrimRight(b, "0"), []byte("."))
}

func (s Seconds) String() string { return string(s.Append(nil)) }

// MarshalJSON returns s as a number, or as the text "never".
func (s Seconds) MarshalJSON() ([]byte, error) {
	if s == Seconds(Never) {
		return []byte(`"never"`), nil
	}
	return s.Append(nil), nil
}
