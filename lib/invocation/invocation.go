// Package invocation tells how a process was started: what to execute to start it
// again. Only Linux tells.
package invocation

import "os"

// Invocation is what a process was started by.
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
