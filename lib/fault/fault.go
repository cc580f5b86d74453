// Package fault defines adlock's errors (kind, object, reason, on one line) and its exit statuses, except 1 (found).
package fault

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// Kind is the kind of an error. It decides the exit status.
type Kind int

const (
	System        Kind = iota // a system call failed, or the error has no other kind
	Usage                     // the command line or a setting is wrong
	Unavailable               // a part that is needed is missing or unreachable
	CannotCreate              // a directory or file cannot be created
	IO                        // input/output error, disk full
	Denied                    // busy, too-soon, full, lost: try again later
	NotPermitted              // not permitted, or stuck
	NoCommand                 // there is no such command
	NotRunnable               // the command exists, but cannot be run
	Misconfigured             // a settings file is wrong about where locks are
)

// Error is an error about one object, shown in one line: "object: reason".
type Error struct {
	Kind   Kind
	Object string // the file, option or process that the error concerns
	Err    error  // the reason, with the operating system's message if it has one
}

func (e *Error) Error() string {
	object := e.Object
	if len(object) > longest {
		object = object[:longest] + "..."
	}
	return object + ": " + reason(e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// longest bounds the object in a message, in bytes (PATH_MAX): an operand can be as long as a command line.
const longest = 4096

// reason returns only the operation and the cause of a *fs.PathError, as the object already names its path.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Op + ": " + path.Err.Error()
	}
	return err.Error()
}

// Worded returns an error that says text and wraps err. (Package fmt would make the helper 100 KB larger.)
func Worded(text string, err error) error { return worded{text, err} }

type worded struct {
	text string
	err  error
}

func (w worded) Error() string { return w.text }
func (w worded) Unwrap() error { return w.err }

// New returns an Error whose reason is a plain text.
func New(kind Kind, object, reason string) *Error {
	return &Error{Kind: kind, Object: object, Err: errors.New(reason)}
}

// Wrap returns err as an Error about object, of the kind of the system's error number. If err names a file in
// the directory object, the Error is about that file. If err is or wraps an Error, Wrap returns that one, so
// the innermost object is shown. Wrap(object, nil) is nil.
func Wrap(object string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var path *fs.PathError
	if errors.As(err, &path) && strings.HasPrefix(path.Path, object+"/") {
		object = path.Path
	}
	return &Error{Kind: kindOf(err), Object: object, Err: err}
}

// KindOf returns the kind of an Error, or else that of the system's error number; System if err has neither.
func KindOf(err error) Kind {
	var known *Error
	if errors.As(err, &known) {
		return known.Kind
	}
	return kindOf(err)
}

// OnQuit lets QUIT (Ctrl-\) end this process without the runtime's trace.
func OnQuit() {
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		<-quit
		sysfile.DieOf(syscall.SIGQUIT)
	}()
}

// Untold is an error that only concerns a dead process, or has already been reported. Report does not print it.
type Untold struct{ Err error }

func (u Untold) Error() string { return u.Err.Error() }
func (u Untold) Unwrap() error { return u.Err }

// Warn prints a warning to standard error, as Report prints an error.
func Warn(object, text string) { Report(New(System, object, text)) }

// Report writes err to standard error as the one line "adlock: object: reason". It does not print an Untold error. It
// does not use os.Stderr, as a write there after the reader has gone would end this process by SIGPIPE.
func Report(err error) {
	var untold Untold
	if errors.As(err, &untold) {
		return
	}
	if path, bare := err.(*fs.PathError); bare {
		err = Wrap(path.Path, path)
	}
	line := []byte("adlock: " + Plain(OneLine(err.Error())) + "\n")
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

// writable waits until standard error, which may be non-blocking, can be written to; false after a second.
func writable() bool {
	const most = 1000 // milliseconds
	n, err := unix.Poll([]unix.PollFd{{Fd: 2, Events: unix.POLLOUT}}, most)
	return n > 0 || err == unix.EINTR
}

// OneLine makes one line of the text of an error: the text of errors.Join has a line for each error.
func OneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// Listed joins up to most of the names by commas, and counts the rest.
func Listed(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + ", and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}

// Numbers joins numbers by commas.
func Numbers(list []int) string {
	var words []string
	for _, n := range list {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}

// Quoted returns text in quotes, so that a shell reads it as one word.
func Quoted(text string) string {
	return "'" + strings.Join(strings.Split(text, "'"), `'\''`) + "'" // ReplaceAll would make the helper larger (inlining)
}

// Plain returns text with '?' for each character that does not print, so that no text moves the cursor.
func Plain(text string) string {
	return strings.Map(func(c rune) rune {
		if !strconv.IsPrint(c) || c == utf8.RuneError {
			return '?'
		}
		return c
	}, text)
}

func kindOf(err error) Kind {
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
