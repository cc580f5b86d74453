//go:build adlock_hasty

package learn

import "time"

// A program for tests learns limits of seconds; no product is built with this tag.
func init() { Floor, Ceiling = 3*time.Second, 10*time.Second }
