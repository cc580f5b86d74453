//go:build adlock_pinned

package main

import "runtime"

// A build for test/steps, which counts the system calls of the first thread: main
// stays on it. Any other build does without, as it would cost a thread.
func init() { runtime.LockOSThread() }
