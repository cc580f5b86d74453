//go:build soak

package need

// Soak reports whether this is the set of tests of `make soak`, which tries every point.
const Soak = true
