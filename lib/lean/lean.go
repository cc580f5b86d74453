// Package lean makes the Go runtime do less for a program that lives for two milliseconds: the runtime
// prepares each program to run in parallel, and for a deep stack only when it is needed.
//
// It must come first of all. Packages are initialised in the order of their import paths, each after
// its imports ("adlock/..." before "errors"), so this package must import no package but runtime.
package lean

import "runtime"

func init() {
	enlargeStack()
	// Goroutines then run one at a time, on any processor. With a second one the runtime starts more
	// threads, and allocates in two places, of which the kernel has to supply each page. There is no
	// other switch, except in the environment, where adlock.sh sets it.
	runtime.GOMAXPROCS(1)
}

// enlargeStack makes the runtime enlarge the stack of main's goroutine at once, while almost nothing is
// on it. Otherwise the runtime doubles the stack, and moves what is on it, six times before the first
// lock is taken, which takes an eighth of the time of a helper run: what takes a lock has frames of 6 to
// 15 KB. A stack costs only those of its pages that are touched.
//
//go:noinline
func enlargeStack() {
	if runtime.GOMAXPROCS(0) == 0 { // never true: only the size of the stack frame matters
		var room [64 << 10]byte
		print(string(room[:]))
	}
}
