//go:build !adlock_unguarded

package lockfile

// guarded is false only in the build that test/history must find out: one that
// verifies and then acts, without a guard.
const guarded = true
