// Package exit is the contract of exit statuses: which number a script sees
// for which kind of trouble, and the one line that goes with it.
//
// The numbers are those of sysexits(3), so that a status of the job itself is
// rarely mistaken for one of ours.
package exit

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// The statuses of every verb.
const (
	OK           = 0
	Usage        = 64 // the command line or a setting is wrong
	Unavailable  = 69 // a part that is needed is missing or unreachable
	System       = 71 // a system call failed
	CannotCreate = 73 // a directory or file cannot be created
	IO           = 74 // input/output error, disk full
	Denied       = 75 // busy, too-soon, full, lost: try again later
	NotPermitted = 77 // not permitted, or stuck
)

// Error is trouble with one object, told in one line: "object: reason".
type Error struct {
	Code   int    // one of the statuses above
	Object string // the file, option or process that is meant
	Err    error  // the reason, with the operating system's words where it has some
}

func (e *Error) Error() string { return brief(e.Object) + ": " + reason(e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// longest is how much of an object is told: every path (PATH_MAX), and of an
// operand that is a whole file enough.
const longest = 4096

func brief(object string) string {
	if len(object) > longest {
		return object[:longest] + "..."
	}
	return object
}

// reason leaves out the path of a *fs.PathError: the object names it already.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Op + ": " + path.Err.Error()
	}
	return err.Error()
}

// New returns an Error whose reason is a plain text.
func New(code int, object, reason string) *Error {
	return &Error{Code: code, Object: object, Err: errors.New(reason)}
}

// Wrap returns err as an Error about object, with the status that belongs to
// the system's error number. An err that is an Error already is returned as it
// is: the innermost object is the one to name. Wrap(object, nil) is nil.
func Wrap(object string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Code: codeOf(err), Object: object, Err: err}
}

// Code returns the status for err: 0 for nil, the Error's own, else System.
func Code(err error) int {
	if err == nil {
		return OK
	}
	var known *Error
	if errors.As(err, &known) {
		return known.Code
	}
	return codeOf(err)
}

// OnQuit lets QUIT (Ctrl-\) end this process without the runtime's trace: for
// whatever may take long enough to be ended by a person.
func OnQuit() {
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		<-quit
		os.Exit(128 + int(syscall.SIGQUIT))
	}()
}

// Report writes err to standard error as the one line "adlock: object: reason".
// That it cannot be written changes nothing. Not by way of os.Stderr: where
// nobody reads any more, that ends this process by SIGPIPE, with all that it holds.
func Report(err error) {
	line := []byte("adlock: " + oneLine(err.Error()) + "\n")
	for len(line) > 0 {
		n, err := syscall.Write(2, line)
		switch {
		case err == nil:
			line = line[n:]
		case err == syscall.EAGAIN && writable():
		case err != syscall.EINTR:
			return
		}
	}
}

// writable waits for room where somebody has made standard error non-blocking,
// and not for ever.
func writable() bool {
	const most = 1000 // milliseconds
	n, err := unix.Poll([]unix.PollFd{{Fd: 2, Events: unix.POLLOUT}}, most)
	return n > 0 || err == unix.EINTR
}

// oneLine keeps a message one line whatever an operand holds.
func oneLine(text string) string {
	return Plain(strings.ReplaceAll(text, "\n", "; ")) // errors.Join
}

// Plain returns text with '?' for all that could move a terminal's cursor or
// begin another line: control characters, those of ISO 6429 above 0x7f too, and
// bytes that are no UTF-8. For what others have named: operands, processes.
func Plain(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == utf8.RuneError {
			return '?'
		}
		return c
	}, text)
}

func codeOf(err error) int {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return System
	}
	switch number {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EFBIG:
		return IO
	case syscall.EROFS, syscall.ENOENT, syscall.ENOTDIR, syscall.ENAMETOOLONG:
		return CannotCreate
	case syscall.EACCES, syscall.EPERM, syscall.ELOOP:
		return NotPermitted
	}
	return System
}
