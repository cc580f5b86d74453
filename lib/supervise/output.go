package supervise

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
)

// output keeps what the job writes to its standard output and error, in the
// order it was written, in a file without a name: a job never meets a broken
// pipe, a full disk is its own write error, and nothing is left after a crash.
//
// A job that opens /dev/stdout or /dev/stderr anew and truncates it, as a
// shell's `>/dev/stderr` does, loses what was held back until then.
type output struct{ file *os.File }

// newOutput makes the file in TMPDIR.
func newOutput() (*output, error) {
	file, err := os.CreateTemp("", "adlock-output-")
	if err != nil {
		return nil, fault.Wrap(os.TempDir(), err)
	}
	o := &output{file}
	if err := os.Remove(file.Name()); err != nil {
		return nil, fault.Wrap(file.Name(), err)
	}
	return o, o.appendOnly()
}

// appendOnly keeps writers who opened the file anew from writing over others.
func (o *output) appendOnly() error {
	_, err := unix.FcntlInt(o.fd(), unix.F_SETFL, unix.O_APPEND)
	return fault.Wrap(o.file.Name(), err)
}

func (o *output) fd() uintptr { return o.file.Fd() }

// show copies to standard output what is there now; a daemon that the job left
// behind may go on writing. A reader that went away is an error, not a SIGPIPE.
func (o *output) show() error {
	signal.Ignore(syscall.SIGPIPE)
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return fault.Wrap(o.file.Name(), err)
	}
	info, err := o.file.Stat()
	if err != nil {
		return fault.Wrap(o.file.Name(), err)
	}
	_, err = io.CopyN(os.Stdout, o.file, info.Size())
	return fault.Wrap("standard output", err)
}
