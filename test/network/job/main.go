// Command job is the job of a contender in the chaos of test/network. Through a socket it
// reports its beginning and end to the judge, by the clock that does not step and counts
// suspend; if it is killed, the judge finds the socket closed. All the while it holds flock(2)
// on its atom's file, so that a second job finds the file locked.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	began := boottime()
	if os.Getenv("CHAOS_DEAF") != "" {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	}
	work, err := time.ParseDuration(os.Getenv("CHAOS_WORK"))
	fail(err)
	alone := lock(os.Getenv("CHAOS_FILE"))
	judge, err := net.Dial("unix", os.Getenv("CHAOS_SOCKET"))
	fail(err)
	tell(judge, "begin %s %d %d %t %s\n", os.Getenv("CHAOS_ID"), os.Getpid(), began, alone, os.Getenv("ADLOCK_FENCE"))
	fail(judge.SetReadDeadline(time.Now().Add(work)))
	_, _ = judge.Read(make([]byte, 1)) // until the work is done, or the judge ends it
	tell(judge, "end %d\n", boottime())
}

func boottime() int64 {
	var now unix.Timespec
	fail(unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	return now.Nano()
}

// lock locks the file until this process ends. It returns false if another process has locked it.
func lock(path string) bool {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	fail(err)
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil
}

func tell(judge net.Conn, format string, words ...any) {
	_, err := fmt.Fprintf(judge, format, words...)
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "job:", err)
		os.Exit(99)
	}
}
