// Package history lets many contenders compete for a few atoms, and checks the resulting
// history.
//
// The contenders are processes of three kinds: workers (package lockdir in this
// test's own binary), scripts (sh/adlock.sh under every shell there is) and jobs
// of `adlock run`. They are stopped, continued and killed at random, hang, wait
// and expire each other. What happens is written down by the jobs themselves,
// not by adlock: one line per event, appended to one file, so that the order of
// the lines is an order in real time. Each job also holds flock(2) on a file of
// the test's own for as long as any process of it lives, so that two jobs of one
// atom at once are seen by the second of them, whatever the record says.
//
// The events of one atom are then given to porcupine, which looks for an order
// of the operations that the model of an atom (atom_test.go) allows.
package history
