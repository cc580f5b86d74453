package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// HasMarks is true: this system shows which processes bear the mark of a job.
const HasMarks = true

// clockTick is the unit of the start in /proc/PID/stat: hundredths of a second in every kernel (USER_HZ).
const clockTick = time.Second / 100

func startAt(boottime time.Duration) uint64 { return uint64(boottime / clockTick) }

// environ reads the environment that execve(2) was given. The error is errUnreadable if the process has overwritten
// its environment or /proc does not show it, errGone if e has ended, and errChanging during an execve or if e's first
// thread has exited.
func environ(e Entry) ([]byte, error) {
	const looks = 20
	for look := range looks {
		text, err := readEnviron(e)
		settled := err == nil && e.environ == len(text) && (len(text) > 0 || look > 0) // empty for a moment during an execve
		none := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)           // the process or its first thread is gone
		refused := errors.Is(err, fs.ErrPermission) || e.environ < 0 && isVeiled(e)    // another user's process, perhaps without its first thread
		was, overwritten := e, settled && isOverwritten(e, text)
		switch {
		case err != nil && !none && !refused:
			return nil, fault.Wrap(path(e.PID, "environ"), err)
		case settled && !overwritten:
			return text, nil
		}
		if e, err = again(e); errors.Is(err, unix.ESRCH) || err == nil && e.Exited {
			return nil, errGone
		} else if err != nil {
			return nil, err
		}
		if refused || overwritten && e.arguments == was.arguments { // otherwise an execve came in between
			return nil, errUnreadable
		}
		time.Sleep(time.Duration(look) * time.Millisecond / 4)
	}
	return nil, errChanging
}

// isVeiled reports whether the kernel hides the address of e's environment from this process. Newer kernels
// may show the environment all the same, to a process with CAP_PERFMON or CAP_SYS_ADMIN.
func isVeiled(e Entry) bool {
	_, err := os.Readlink(path(e.PID, "exe"))
	return errors.Is(err, fs.ErrPermission)
}

// readEnviron asks for one byte more than the environment had, so that a longer one is noticed.
func readEnviron(e Entry) ([]byte, error) {
	return sysfile.ReadStart(path(e.PID, "environ"), make([]byte, max(e.environ, 0)+1))
}

func again(e Entry) (Entry, error) {
	fresh, err := look(e.PID)
	if err == nil && fresh.Start != e.Start {
		err = unix.ESRCH
	}
	return fresh, err
}

// isOverwritten reports whether a process has overwritten its environment, for example with a title: the
// text does not begin with a variable, or /proc/PID/cmdline shows another end of the arguments (proc_pid_cmdline(5)).
func isOverwritten(e Entry, env []byte) bool {
	first, _, _ := bytes.Cut(env, []byte{0})
	if len(env) > 0 && bytes.IndexByte(first, '=') <= 0 {
		return true
	}
	shown, err := sysfile.ReadStart(path(e.PID, "cmdline"), make([]byte, max(e.arguments, 0)+1))
	return err == nil && (len(shown) != e.arguments || e.arguments > 0 && shown[e.arguments-1] != 0)
}

// imagesDiffer reports whether the kernel chooses an image's addresses at random, for this process and its
// ancestors (personality(2), proc_sys_kernel(5)). Otherwise all processes of one program have the same image.
var imagesDiffer = sync.OnceValue(func() bool { return randomises("/proc/sys/kernel/randomize_va_space") })

func randomises(setting string) bool {
	const addrNoRandomize, query = 0x0040000, 0xffffffff
	persona, _, failed := unix.RawSyscall(unix.SYS_PERSONALITY, query, 0, 0)
	mode, err := word(setting)
	return failed == 0 && persona&addrNoRandomize == 0 && err == nil && (mode == "1" || mode == "2")
}
