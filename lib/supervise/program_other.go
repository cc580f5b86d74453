//go:build !linux

package supervise

import "os"

// ownProgram names the file that this process runs.
func ownProgram() (string, error) { return os.Executable() }
