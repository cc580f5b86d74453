package killer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/must"
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
		_, err = list(h, nil)
		fmt.Println(errors.As(err, &stuck) && stuck.PID == -other, errors.Is(err, process.ErrUnchecked))
		h.unseen = 0
		done, err := h.scan()
		fmt.Println(done, err, h.unseen == other)
		return 0
	}
}

func TestAJobWithAHiddenOwnerOrGroupIsStuck(t *testing.T) {
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

func init() {
	// It has entered a pid namespace whose first process is not its ancestor.
	actor.Roles["visitor"] = func([]string) int {
		id, err := process.Of(1)
		var r recorder
		endErr := r.killer(0).End(process.Job{Owner: id, FileUID: -1})
		var stuck *process.StuckError
		h, trackErr := trackOwn(false)
		fmt.Println(err, os.Getppid(), process.IsAncestor(1), endErr, errors.As(endErr, &stuck), len(r.sent), trackErr == nil && h.spared[1] && h.spared[os.Getpid()] && len(h.spared) == 2)
		return 0
	}
}

func TestAnEndingSparesTheFirstProcessOfItsPidNamespace(t *testing.T) {
	need.Root(t)
	need.Namespaces(t, "--pid", "--fork", "--mount-proc")
	need.Tools(t, "nsenter")
	host := actor.Launch(t, actor.Leads, exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sleep", "100"))
	first := 0
	actor.Eventually(t, "a namespace", func() bool {
		pids := process.Children(host.PID())
		if len(pids) != 1 {
			return false
		}
		first = pids[0]
		e, err := process.Find(first)
		return err == nil && e.Command == "sleep"
	})
	exe := must.Get(os.Executable())(t)
	cmd := exec.Command("nsenter", "--target", strconv.Itoa(first), "--pid", "--mount", exe)
	cmd.Env = append(os.Environ(), actor.Role+"=visitor")
	a := actor.Launch(t, actor.Leads, cmd)
	a.Await()
	want := "<nil> 0 false process 1: operation not permitted true 0 true\n"
	if got := a.Out.String(); got != want || gone(first) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func init() {
	// It is a process whose parent is not pid 1, and has no descriptor left to read its parent.
	actor.Roles["blind"] = func([]string) int {
		h := newTree(-1)
		h.membership.Roots[process.Key{PID: 1, Start: 1}] = true
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
			return 1
		}
		few := limit
		few.Cur = 3
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &few) != nil {
			return 1
		}
		err := h.spare()
		line, _ := process.Ancestors()
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) != nil { // the results are written at the end
			return 1
		}
		println(errors.Is(err, unix.EMFILE), err.Error(), h.spared == nil, len(line), process.IsAncestor(os.Getppid()))
		return 0
	}
}

func TestAncestorsThatCannotBeReadAreAnError(t *testing.T) {
	a := actor.Play(t, actor.Leads, "blind")
	if got := a.Said(); !strings.HasPrefix(got, "true ancestors of this process: ") || !strings.HasSuffix(got, " true 2 true\n") {
		t.Errorf("got %q", got)
	}
}
