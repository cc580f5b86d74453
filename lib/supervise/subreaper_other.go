//go:build !linux

package supervise

// adoptOrphans does nothing: here an orphan is known by its group only.
func adoptOrphans() error { return nil }
