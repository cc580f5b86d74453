package helper

import (
	"os"
	"strings"
	"testing"
)

// Anonymous counts this process's descriptors of a kind that has no path.
func Anonymous(t testing.TB, kind string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		if link, _ := os.Readlink("/proc/self/fd/" + entry.Name()); strings.Contains(link, kind) {
			n++
		}
	}
	return n
}
