//go:build !linux

package sysfile

// IsNetwork is always false: file systems are distinguished only on Linux, where the tests run.
func IsNetwork(int) bool { return false }
