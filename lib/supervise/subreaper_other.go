//go:build !linux

package supervise

// CanKeepWhole is false: here a daemon that has left the group cannot be found.
func CanKeepWhole() bool { return false }

// hasChildren is false: here only the process table shows live processes.
func hasChildren() bool { return false }

// adoptOrphans does nothing: here orphans are found only in the group that this process leads.
func adoptOrphans() error { return nil }
