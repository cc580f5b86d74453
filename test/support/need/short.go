//go:build !soak

package need

// Soak reports whether this is the set of tests of `make soak`. `make test` tries a sample.
const Soak = false
