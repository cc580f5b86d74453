package sysfile

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// soon is how long a test waits for what has to happen.
const soon = 90 * time.Second

// within returns the next value of the channel.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	var got T
	select {
	case got = <-c:
	case <-time.After(soon):
		t.Fatal("nothing has come in " + soon.String())
	}
	return got
}

// waits reports whether a goroutine is inside both functions, by its stack.
func waits(inner, outer string) bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, inner) && strings.Contains(stack, outer) {
			return true
		}
	}
	return false
}
