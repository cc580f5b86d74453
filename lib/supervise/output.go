package supervise

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// output holds what the job writes to its standard output and error, in unnamed files: a job never gets a
// broken pipe, and no file is left after a crash. If both streams of this process lead to one file (a
// terminal, cron's pipe), one held file keeps both in order; otherwise the order between the two is lost.
//
// On Linux the files are in memory: a job that succeeds without adlock must not fail because a temporary
// directory is full or missing. A job that opens /dev/stdout again and truncates it loses what that file had.
type output struct{ out, trouble held } // one file twice if both streams are one

type held struct {
	*os.File
	place string
}

func newOutput() (*output, error) {
	out, err := newHeld()
	if err != nil || isOneFile(1, 2) {
		return &output{out, out}, err
	}
	trouble, err := newHeld()
	return &output{out, trouble}, err
}

// incomplete returns an error if a file has no room to grow, so that some output may be missing. The job has got the
// error of its failed write, and may have ignored it.
func (o *output) incomplete() error {
	for _, file := range []held{o.out, o.trouble} {
		if why := sysfile.NoRoomIn(int(file.Fd())); why != nil {
			return fault.Worded("the output may be incomplete: --quiet-ok keeps it in "+file.place+": "+why.Error(), why)
		}
	}
	return nil
}

func isOneFile(a, b int) bool {
	var first, second unix.Stat_t
	return unix.Fstat(a, &first) == nil && unix.Fstat(b, &second) == nil && first.Dev == second.Dev && first.Ino == second.Ino
}

// newHeld makes a file in memory, or in TMPDIR if the kernel has no files in memory.
func newHeld() (held, error) {
	file, err := memory("adlock-output")
	place := "memory"
	if err != nil {
		file, err = newTemporary()
		place = "TMPDIR, " + os.TempDir()
	}
	if err != nil {
		return held{}, err
	}
	// Processes that share the file append to it, and do not overwrite each other's output.
	_, err = unix.FcntlInt(file.Fd(), unix.F_SETFL, unix.O_APPEND)
	return held{file, place}, fault.Wrap(file.Name(), err)
}

var memory = inMemory // a variable for tests of systems without files in memory

func newTemporary() (*os.File, error) {
	file, err := os.CreateTemp("", "adlock-output-")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, fault.Worded("--quiet-ok keeps the output in TMPDIR, "+os.TempDir()+": "+errors.Unwrap(err).Error(), errors.Unwrap(err))
	}
	return file, nil
}

// show copies the present content of the files to their streams; a daemon that the job left behind
// may go on writing. show ignores SIGPIPE, so a stream whose reader has gone is an error.
func (o *output) show() error {
	signal.Ignore(syscall.SIGPIPE)
	err := show(o.out.File, os.Stdout, "standard output")
	if o.trouble != o.out {
		err = errors.Join(err, show(o.trouble.File, os.Stderr, "standard error"))
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
