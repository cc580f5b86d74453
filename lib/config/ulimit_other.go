//go:build !linux

package config

// CheckThreads is for Linux.
func CheckThreads() error { return nil }

// CheckFiles is for Linux.
func CheckFiles() error { return nil }
