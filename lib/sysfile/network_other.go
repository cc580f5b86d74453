//go:build !linux

package sysfile

// IsNetwork is false: it is not implemented for these systems.
func IsNetwork(int) bool { return false }
