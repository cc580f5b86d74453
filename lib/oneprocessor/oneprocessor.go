// Package oneprocessor has the goroutines of a program run one at a time, on whatever processor is
// free. A helper lives for two milliseconds and has nothing to run in parallel, but with a second
// processor the runtime starts more threads for it, and each processor has a heap of its own, whose
// pages the kernel has to supply.
//
// The runtime has no other switch for a program than this call (or GOMAXPROCS in the environment, which
// adlock.sh sets). It is cheapest before anything is on the heap. Packages are initialised in the order
// of their import paths, each after its imports ("adlock/..." before "errors"): so this package, which
// must import nothing else, is the first.
package oneprocessor

import "runtime"

func init() { runtime.GOMAXPROCS(1) }
