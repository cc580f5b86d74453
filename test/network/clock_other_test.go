//go:build soak && (!linux || !amd64)

package network

import (
	"errors"
	"os/exec"
	"time"
)

// startWithClock: see clock_linux_amd64_test.go.
func startWithClock(command *exec.Cmd, at time.Time, by time.Duration) error {
	return errors.New("only known for linux/amd64")
}
