//go:build !linux

package supervise

import (
	"errors"
	"os"
)

// inMemory always fails here; newHeld then makes a file in TMPDIR.
func inMemory(string) (*os.File, error) { return nil, errors.ErrUnsupported }
