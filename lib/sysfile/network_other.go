//go:build !linux

package sysfile

// IsNetwork is always false: file systems are distinguished on Linux alone, where the tests run.
func IsNetwork(int) bool { return false }
