// Package lean makes the Go runtime do less for a program that lives for two milliseconds. The runtime
// prepares each program for parallel work, and enlarges its stack only in small steps.
//
// This package must be initialised before all others. Packages are initialised in the order of their import paths
// ("adlock/..." before "errors"), each after its imports, so this one must import no package but runtime.
package lean

import "runtime"

func init() {
	enlargeStack()
	// One goroutine runs at a time. For a second processor the runtime starts more threads, and gives it
	// memory of its own to allocate from, whose pages the kernel has to supply. With GOMAXPROCS=1 in the
	// environment, as adlock.sh sets it, this call has nothing left to change.
	runtime.GOMAXPROCS(1)
}

// enlargeStack makes the runtime enlarge the stack of main's goroutine at once, while almost nothing is on
// it. Otherwise the runtime doubles the stack and copies it six times before the first lock is taken: the
// functions that take a lock have frames of 6 to 15 KB. These copies take an eighth of a helper run's time. Pages
// of the stack that are never touched cost nothing.
//
//go:noinline
func enlargeStack() {
	if runtime.GOMAXPROCS(0) == 0 { // never true: only the size of the stack frame matters
		var room [64 << 10]byte
		print(string(room[:]))
	}
}
