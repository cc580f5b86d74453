//go:build adlock_brief

package idle

import "time"

// A program for tests watches for a second or two; no product is built with this tag.
func init() { Shortest, Longest = time.Second, 2*time.Second }
