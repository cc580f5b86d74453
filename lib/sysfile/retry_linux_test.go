package sysfile

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestRetryRepeatsAnInterruptedCall(t *testing.T) {
	for _, want := range []error{nil, unix.EIO} {
		calls := 0
		call := func() (int, error) {
			if calls++; calls%3 != 0 {
				return -1, unix.EINTR
			}
			return calls, want
		}
		if err := Retry(func() error { _, err := call(); return err }); err != want || calls != 3 {
			t.Errorf("%v after %d calls", err, calls)
		}
		if n, err := RetryN(call); err != want || n != 6 {
			t.Errorf("%d, %v after %d calls", n, err, calls)
		}
	}
}
