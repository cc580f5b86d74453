//go:build soak

package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// buildSkewed builds adlock and its locksmith with another clock.
var buildSkewed = sync.OnceValues(func() (string, error) {
	changes, err := helper.Skewed()
	if err != nil {
		return "", err
	}
	return buildBoth("skewed", changes)
})

// buildBoth builds adlock and its locksmith with these changes, in a directory of that name.
func buildBoth(name string, c helper.Changes) (string, error) {
	dir := filepath.Join(beside, name)
	err := os.Mkdir(dir, 0o700)
	for _, program := range []string{"adlock", "adlock-locksmith"} {
		err = errors.Join(err, c.Build(filepath.Join(dir, program)))
	}
	return filepath.Join(dir, "adlock"), err
}

// skew gives the host a wall clock ahead of the machine's.
func (h *host) skew(t testing.TB, ahead time.Duration) { h.step(t, time.Unix(0, 0), ahead) }

// step makes the wall clock of the host step at that time.
func (h *host) step(t testing.TB, at time.Time, by time.Duration) {
	t.Helper()
	bin := must.Get(buildSkewed())(t)
	h.bin = bin
	from, ahead := fmt.Sprint("TEST_CLOCK_FROM=", at.Unix()), fmt.Sprint("TEST_CLOCK_AHEAD=", int(by.Seconds()))
	h.env = append(h.env, from, ahead)
}
