//go:build !linux

package sysfile

import "os"

// OwnProgram returns the path of the program file that this process runs.
func OwnProgram() (string, error) { return os.Executable() }
