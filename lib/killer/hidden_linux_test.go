package killer

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/need"
)

func init() {
	// It runs as an unprivileged user, so /proc hides root's processes. Its arguments are the pid
	// of a hidden process and the inode of that process's pidfd.
	actor.Roles["seeker"] = func(args []string) int {
		other, _ := strconv.Atoi(args[0])
		inode, _ := strconv.ParseUint(args[1], 10, 64)
		id := process.Here()
		id.PID, id.Inode = other, inode
		var r recorder
		err := r.killer(0).End(process.Job{Owner: id, FileUID: -1})
		var stuck *process.StuckError
		fmt.Println(errors.As(err, &stuck) && stuck.PID == other, errors.Is(err, unix.EPERM), len(r.sent))

		h := newTree(-1)
		h.membership.AddGroup(process.Identity{PID: other, Start: 1, PGID: other, SID: process.Unrecorded})
		_, err = h.list()
		fmt.Println(errors.As(err, &stuck) && stuck.PID == -other, errors.Is(err, process.ErrUnchecked))
		h.unseen = 0
		done, err := h.scan()
		fmt.Println(done, err, h.unseen == other)
		return 0
	}
}

func TestAHiddenOwnerOrGroupIsNotOver(t *testing.T) {
	need.Root(t)
	other := actor.Sleeper(t, actor.Leads)
	inode := idOf(other).Inode
	if inode == 0 {
		need.Skip(t, "before Linux 6.9 nothing names a hidden process for good")
	}
	b := actor.Play(t, syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}, "lookout", "seeker", strconv.Itoa(other.PID()), strconv.FormatUint(inode, 10))
	b.Await()
	if b.ProcessState.ExitCode() == 2 {
		need.Skip(t, "may not mount")
	}
	if got, want := b.Out.String(), "true true 0\ntrue true\nfalse <nil> true\n"; got != want || gone(other.PID()) {
		t.Errorf("got %q, want %q", got, want)
	}
}
