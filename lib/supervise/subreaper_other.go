//go:build !linux

package supervise

// CanKeepWhole: a daemon that has left the group is lost from sight here.
func CanKeepWhole() bool { return false }

// hasChildren leaves it to the process table to say what lives.
func hasChildren() bool { return false }

// adoptOrphans does nothing: here an orphan is known by its group only.
func adoptOrphans() error { return nil }
