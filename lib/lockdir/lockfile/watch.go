package lockfile

import "time"

// PollLeast is the shortest time between two looks of a waiter where the kernel sends no events.
const PollLeast = 100 * time.Millisecond
