package supervise

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
)

// output keeps what the job writes to its standard output and error, in unnamed files: a job
// never meets a broken pipe, a full disk is a write error of the job's, and nothing is left after
// a crash. If both streams of this process lead to one file (a terminal, cron's pipe), one file
// keeps both, in the order of writing. Otherwise each stream has its own file, and the order
// between the two is lost.
//
// A job that opens /dev/stdout or /dev/stderr again and truncates it, as a shell's `>/dev/stderr`
// does, loses what that file had until then.
type output struct{ out, trouble *os.File } // the same if both streams are one

func newOutput() (*output, error) {
	out, err := newHeld()
	if err != nil || isOneFile(1, 2) {
		return &output{out, out}, err
	}
	trouble, err := newHeld()
	return &output{out, trouble}, err
}

// isOneFile reports whether two descriptors lead to the same file.
func isOneFile(a, b int) bool {
	var first, second unix.Stat_t
	return unix.Fstat(a, &first) == nil && unix.Fstat(b, &second) == nil && first.Dev == second.Dev && first.Ino == second.Ino
}

// newHeld makes a file in TMPDIR.
func newHeld() (*os.File, error) {
	file, err := os.CreateTemp("", "adlock-output-")
	if err != nil {
		return nil, fault.Wrap(os.TempDir(), err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, fault.Wrap(file.Name(), err)
	}
	// Processes that share the file append to it, and do not overwrite each other's output.
	_, err = unix.FcntlInt(file.Fd(), unix.F_SETFL, unix.O_APPEND)
	return file, fault.Wrap(file.Name(), err)
}

// show copies the present content of the files to their streams; a daemon that the job left
// behind may go on writing. A reader that has gone is an error, not a SIGPIPE.
func (o *output) show() error {
	signal.Ignore(syscall.SIGPIPE)
	err := show(o.out, os.Stdout, "standard output")
	if o.trouble != o.out {
		err = errors.Join(err, show(o.trouble, os.Stderr, "standard error"))
	}
	return err
}

func show(held, to *os.File, name string) error {
	if _, err := held.Seek(0, io.SeekStart); err != nil {
		return fault.Wrap(held.Name(), err)
	}
	info, err := held.Stat()
	if err != nil {
		return fault.Wrap(held.Name(), err)
	}
	_, err = io.CopyN(to, held, info.Size())
	return fault.Wrap(name, err)
}
