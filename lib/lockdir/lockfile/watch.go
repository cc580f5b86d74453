package lockfile

import "time"

// PollLeast is how long at least a waiter leaves a lock alone where the kernel does
// not tell that there is something to look at.
const PollLeast = 100 * time.Millisecond
