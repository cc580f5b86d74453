//go:build !linux

package sysfile

import "os"

// OwnProgram names the file that this process runs.
func OwnProgram() (string, error) { return os.Executable() }
