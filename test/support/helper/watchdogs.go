package helper

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// WatchdogsOf returns the pids of the watchdogs of a lease's owner, by the
// owner's pid (lib/lease/watchdog).
func WatchdogsOf(owner int) (pids []int) {
	of := []byte("\x00" + strconv.Itoa(owner) + "\x00")
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		line, _ := os.ReadFile(path) // it may be gone
		if bytes.HasPrefix(line, []byte("adlock-locksmith: watchdog\x00")) && bytes.Contains(line, of) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}
