//go:build !linux

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// HasMarks is false: the environment of a process cannot be read everywhere.
const HasMarks = false

func startAt(time.Duration) uint64 { return 0 }

func environ(Entry) ([]byte, error) { return nil, unix.ENOTSUP }

func imagesDiffer() bool { return false }
