package doctor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// other is argv[0] of the process that askOther starts. No program has this name.
const other = "adlock: another"

func askOther(path string) (free bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	const most = 30 * time.Second // for a file server that does not answer
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	command := exec.CommandContext(ctx, self)
	command.Args, command.WaitDelay = []string{other, path}, most
	text, err := command.Output()
	switch {
	case err != nil:
		return false, fault.New(fault.System, path, "another process: "+err.Error())
	case len(text) == 0:
		return true, nil
	case bytes.Equal(text, []byte(held)):
		return false, nil
	}
	return false, fault.New(fault.System, path, string(text))
}

const held = "held"

// Main must be called early in main. In the process that askOther starts, it does not return.
func Main() {
	if len(os.Args) == 2 && os.Args[0] == other {
		os.Stdout.WriteString(try(os.Args[1])) // a failed write counts as the answer "", which means free
		os.Exit(fault.StatusOK)
	}
}

func try(path string) string {
	fd, err := sysfile.Open(path, unix.O_RDWR)
	if err == nil {
		err = sysfile.Flock(fd, unix.LOCK_EX, 0)
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, unix.EWOULDBLOCK):
		return held
	}
	return "flock: " + err.Error()
}
