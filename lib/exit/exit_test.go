package exit

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestAMessageIsOnePlainLine(t *testing.T) {
	for text, want := range map[string]string{
		"caf\u00e9 \u65e5":          "caf\u00e9 \u65e5",
		"a\nb":                      "a; b",
		"\x1b[2J\r\t\x00\x7f":       "?[2J????",
		"\u009b2J \x9b2J \xc3 \xff": "?2J ?2J ? ?",
		"\ufffd":                    "?",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestAnObjectWithoutEndIsCut(t *testing.T) {
	if got := New(System, strings.Repeat("x", 1<<17), "is long").Error(); len(got) > 5000 || !strings.HasSuffix(got, "x...: is long") {
		t.Errorf("%d bytes: %.20s", len(got), got)
	}
}

func TestTheSystemsErrorNumberGivesTheStatus(t *testing.T) {
	for number, want := range map[syscall.Errno]int{
		syscall.ENOSPC: IO, syscall.EIO: IO, syscall.EDQUOT: IO, syscall.EFBIG: IO,
		syscall.EROFS: CannotCreate, syscall.ENOENT: CannotCreate,
		syscall.EACCES: NotPermitted, syscall.EPERM: NotPermitted, syscall.ELOOP: NotPermitted,
		syscall.EMFILE: System, syscall.ENOLCK: System,
	} {
		err := Wrap("file", &fs.PathError{Op: "open", Path: "file", Err: number})
		if Code(err) != want || err.Error() != "file: open: "+number.Error() {
			t.Errorf("%v: status %d, %q", number, Code(err), err)
		}
		if again := Wrap("another", err); again != err {
			t.Errorf("the innermost object is lost: %v", again)
		}
	}
	if Code(nil) != OK || Wrap("file", nil) != nil || Code(errors.New("x")) != System {
		t.Error("no error, or an unknown one, has another status")
	}
}
