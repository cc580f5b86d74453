//go:build !linux

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// HasMarks is false: on some of these systems the environment of another process cannot be read.
const HasMarks = false

func startAt(time.Duration) uint64 { return 0 }

func environ(Entry) ([]byte, error) { return nil, unix.ENOTSUP }

func imagesDiffer() bool { return false }
