//go:build adlock_unguarded

package lockfile

// guarded is false in this build, which no lock should be trusted to: it is
// there for test/history, whose checker must find out what goes wrong.
const guarded = false
