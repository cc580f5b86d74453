//go:build !linux

package supervise

// CanKeepWhole is false: here a daemon that has left the group is lost from sight.
func CanKeepWhole() bool { return false }

// hasChildren is false: here only the process table shows live processes.
func hasChildren() bool { return false }

// adoptOrphans does nothing: here an orphan is known by its group only.
func adoptOrphans() error { return nil }
