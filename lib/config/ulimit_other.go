//go:build !linux

package config

// CheckThreads checks nothing outside Linux.
func CheckThreads() error { return nil }

func CheckFiles() error { return nil }
