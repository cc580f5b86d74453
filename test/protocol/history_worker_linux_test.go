package protocol

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// workerEnv makes this test binary a worker, with its name as a contender.
const workerEnv = "HISTORY_WORKER"

// worker tries one atom after the other until the round is over, or the test is dead. It costs
// little, for large numbers of acquisitions.
func worker(contender string) error {
	entrant, err := arenaAt(os.Getenv("HISTORY")).entrant()
	if err != nil {
		return err
	}
	for n, test := 1, os.Getppid(); !entrant.stopped() && os.Getppid() == test; n++ {
		elapsed := []time.Duration{0, 0, 0, 0, 0, 100 * time.Millisecond, 500 * time.Millisecond, time.Second}[rand.N(8)]
		wait := max(0, rand.N(400*time.Millisecond)-200*time.Millisecond)
		verdict, err := entrant.try(fmt.Sprintf("%s.%d", contender, n), rand.N(atoms), elapsed, wait, work)
		if err != nil {
			return err
		}
		if verdict == lost {
			return nil // the death of the process frees what is left of the lock
		}
		time.Sleep(rand.N(2 * time.Millisecond))
	}
	return nil
}

// work takes a moment; sometimes it hangs, or hangs and ignores signals.
func work() {
	switch rand.N(2000) {
	case 0:
		time.Sleep(time.Minute)
	case 1:
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
		time.Sleep(time.Minute)
	default:
		time.Sleep(rand.N(time.Millisecond))
	}
}

// uptime is the clock of /proc/uptime, which a shell reads without a fork.
func uptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // every Linux since 2.6.39 has it
	}
	return time.Duration(now.Nano())
}
