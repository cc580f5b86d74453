package helper

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Stderr returns what do writes to standard error.
func Stderr(t testing.TB, do func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(before)
	if err := unix.Dup2(int(w.Fd()), 2); err != nil {
		t.Fatal(err)
	}
	w.Close()
	func() {
		defer unix.Dup2(before, 2) // this closes the pipe's last writer
		do()
	}()
	said, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}
