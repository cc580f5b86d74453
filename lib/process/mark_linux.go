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
)

// HasMarks is true: this system shows which processes bear the mark of a job.
const HasMarks = true

// clockTick is the unit of the start in /proc/PID/stat: hundredths of a second in every kernel (USER_HZ).
const clockTick = time.Second / 100

func startAt(boottime time.Duration) uint64 { return uint64(boottime / clockTick) }

// environ reads the environment of a process. /proc shows what execve(2) was given, unless the
// process has overwritten it.
func environ(e Entry) ([]byte, error) {
	const looks = 20
	for look := range looks {
		text, err := readEnviron(e)
		settled := err == nil && e.environ == len(text) && (len(text) > 0 || look > 0) // an execve shows none for a moment
		none := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)           // gone, or its first thread is
		refused := errors.Is(err, fs.ErrPermission) || e.environ < 0 && isVeiled(e)    // for another user's first thread that is gone, too
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
		if refused || overwritten && e.arguments == was.arguments { // else an execve came between
			return nil, errUnreadable
		}
		time.Sleep(time.Duration(look) * time.Millisecond / 4)
	}
	return nil, errChanging
}

// isVeiled tells whether this process may not see where the environment is. Newer kernels may show the
// environment all the same, to a process with CAP_PERFMON or CAP_SYS_ADMIN.
func isVeiled(e Entry) bool {
	_, err := os.Readlink(path(e.PID, "exe"))
	return errors.Is(err, fs.ErrPermission)
}

// readEnviron reads one byte more than the environment has, so that a changed length shows.
func readEnviron(e Entry) ([]byte, error) {
	return read(path(e.PID, "environ"), make([]byte, max(e.environ, 0)+1))
}

func again(e Entry) (Entry, error) {
	fresh, err := look(e.PID)
	if err == nil && fresh.Start != e.Start {
		err = unix.ESRCH
	}
	return fresh, err
}

// isOverwritten tells whether a process has written something else, such as a title, over its environment,
// which is behind its arguments: /proc/PID/cmdline then shows another end of these (proc_pid_cmdline(5)).
func isOverwritten(e Entry, env []byte) bool {
	first, _, _ := bytes.Cut(env, []byte{0})
	if len(env) > 0 && bytes.IndexByte(first, '=') <= 0 {
		return true
	}
	shown, err := read(path(e.PID, "cmdline"), make([]byte, max(e.arguments, 0)+1))
	return err == nil && (len(shown) != e.arguments || e.arguments > 0 && shown[e.arguments-1] != 0)
}

// imagesDiffer tells whether the kernel chooses an image's addresses at random, for this process and its
// ancestors (personality(2), proc_sys_kernel(5)). Otherwise strangers that run one program have one image.
var imagesDiffer = sync.OnceValue(func() bool { return randomises("/proc/sys/kernel/randomize_va_space") })

func randomises(setting string) bool {
	const addrNoRandomize, query = 0x0040000, 0xffffffff
	persona, _, failed := unix.RawSyscall(unix.SYS_PERSONALITY, query, 0, 0)
	mode, err := word(setting)
	return failed == 0 && persona&addrNoRandomize == 0 && err == nil && (mode == "1" || mode == "2")
}
