package main

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

// readingLimits limits how long reading may take. It is counted in short sleeps, which a busy machine lengthens.
type readingLimits struct {
	Silence time.Duration // without a call of alive
	Whole   time.Duration // in all
}

const readingStep = 10 * time.Millisecond

func readingSteps(d time.Duration) int64 { return int64((d + readingStep - 1) / readingStep) }

var errSilent = errors.New("does not answer, and is left out")

// doAs calls do with the user's rights to files and returns its results, or errSilent if do was
// silent for too long. do must call alive before each file, which shows that it has read the
// previous file. If alive returns false, the whole time has passed, and do must return what it has.
//
// do runs on a thread that ends with it, and must not start goroutines, which would have root's rights. A silent
// thread stays until the file system answers or this process ends, so do must not write to variables of its caller.
func doAs[T any](u otherUser, p readingLimits, do func(alive func() bool) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	var now, heard atomic.Int64 // in steps; heard: at the last call of alive
	alive := func() bool {
		heard.Store(now.Load())
		return now.Load() < readingSteps(p.Whole)
	}
	go func() {
		runtime.LockOSThread() // and never unlocked: no other goroutine gets this thread
		a := answer{err: become(u)}
		if a.err == nil {
			a.value, a.err = do(alive)
		}
		done <- a
	}()
	for now.Load()-heard.Load() < readingSteps(p.Silence) {
		select {
		case a := <-done:
			return a.value, a.err
		case <-time.After(readingStep):
			now.Add(1)
		}
	}
	return *new(T), errSilent
}
