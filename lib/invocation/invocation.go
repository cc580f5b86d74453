// Package invocation finds out how a process was started, so that it can be started again in the
// same way. This is possible on Linux only.
package invocation

import "os"

// Invocation is how a process was started.
type Invocation struct {
	File string   // the program
	Args []string // its argument vector, the name that it was called by first
}

// SameFile reports whether two paths lead to one file.
func SameFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}
