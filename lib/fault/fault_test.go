package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/must"
	_ "adlock/test/support/need" // the same environment, however the suite is started
)

func TestAMessageIsOnePlainLine(t *testing.T) {
	for text, want := range map[string]string{
		"caf\u00e9 \u65e5":          "caf\u00e9 \u65e5",
		"a\nb":                      "a; b",
		"\x1b[2J\r\t\x00\x7f":       "?[2J????",
		"\u009b2J \x9b2J \xc3 \xff": "?2J ?2J ? ?",
		"\ufffd":                    "?",
		"\u202ea\u2028b\ufeff":      "?a?b?",
		"\U000e0041\u200f \u00ad":   "?? ?",
	} {
		check.Equal(t, text, Plain(OneLine(text)), want)
	}
}

func TestALongObjectIsCutInAMessage(t *testing.T) {
	if got := New(System, strings.Repeat("x", 1<<17), "is long").Error(); len(got) > 5000 || !strings.HasSuffix(got, "x...: is long") {
		t.Errorf("%d bytes: %.20s", len(got), got)
	}
}

func TestTheErrorNumberDeterminesTheKindOfAnError(t *testing.T) {
	for number, want := range map[syscall.Errno]Kind{
		syscall.ENOSPC: IO, syscall.EIO: IO, syscall.EDQUOT: IO, syscall.EFBIG: IO,
		syscall.EROFS: CannotCreate, syscall.ENOENT: CannotCreate,
		syscall.EACCES: NotPermitted, syscall.EPERM: NotPermitted, syscall.ELOOP: NotPermitted,
		syscall.EMFILE: System, syscall.ENOLCK: System,
	} {
		err := Wrap("file", &fs.PathError{Op: "open", Path: "file", Err: number})
		if KindOf(err) != want || err.Error() != "file: open: "+number.Error() {
			t.Errorf("%v: kind %d, %q", number, KindOf(err), err)
		}
		check.Equal(t, "wrapped again", Wrap("another", err), err)
	}
	below := &fs.PathError{Op: "open", Path: "dir/file", Err: syscall.EISDIR}
	check.Equal(t, "a file in the directory", Wrap("dir", below).Error(), "dir/file: open: is a directory")
	if Wrap("file", nil) != nil || KindOf(errors.New("x")) != System {
		t.Error("no error, or an unknown one, has another kind")
	}
}

func TestAShellReadsQuotedTextAsOneWord(t *testing.T) {
	for _, text := range []string{"", "a b", "it's", `'\''`, "$(x)\n*"} {
		out, err := exec.Command("/bin/sh", "-c", "set -- "+Quoted(text)+`; printf %s "$#$1"`).Output()
		if err != nil || string(out) != "1"+text {
			t.Errorf("%q came as %q, %v", text, out, err)
		}
	}
}

func TestAnErrorsKindDeterminesItsExitStatus(t *testing.T) {
	for err, want := range map[error]int{
		nil:                         StatusOK,
		errors.New("unheard of"):    StatusSystem,
		fs.ErrPermission:            StatusSystem, // it has no error number of the system
		New(Usage, "x", "y"):        64,
		New(Unavailable, "x", "y"):  69,
		New(System, "x", "y"):       71,
		New(CannotCreate, "x", "y"): 73,
		New(IO, "x", "y"):           74,
		New(Denied, "x", "y"):       75,
		New(NotPermitted, "x", "y"): 77,
		New(NotRunnable, "x", "y"):  126,
		New(NoCommand, "x", "y"):    127,
	} {
		check.Equal(t, fmt.Sprint(err), StatusOf(err), want)
	}
}

// library is the text of sh/adlock.sh, which has to repeat these numbers.
func library(t *testing.T) string {
	t.Helper()
	return string(must.Get(os.ReadFile("../../sh/adlock.sh"))(t))
}

// body is the text of a function of the library.
func body(t *testing.T, function string) string {
	t.Helper()
	_, text, begun := strings.Cut(library(t), "\n"+function+"() {\n")
	text, _, ended := strings.Cut(text, "\n}\n")
	if !begun || !ended {
		t.Fatalf("adlock.sh has no function %s", function)
	}
	return text
}

func TestAdlockGetHasABranchForEachAnswer(t *testing.T) {
	get := body(t, "_adlock_get_atom") + body(t, "_adlock_run_to_take")
	for status, meaning := range map[int]string{
		StatusOK:      `0\)\n[^)]*'\) _adlock_confirm [^)]*\n\t\t_adlock_held=\$_adlock_lock.* _adlock_verdict=acquired\n`,
		AnswerTooSoon: `%\) _adlock_deny too-soon ;;`,
		AnswerBusy:    `%\) _adlock_deny busy ;;`,
		AnswerFull:    `%\) _adlock_deny full ;;`, AnswerPaused: `%\) _adlock_deny paused ;;`,
		AnswerExpired: `%\) _adlock_take takeover "\$@" ;;`,
		AnswerStuck:   `%\) _adlock_deny stuck ` + strconv.Itoa(StatusNotPermitted) + ` ;;`,
	} {
		pattern := strings.ReplaceAll(meaning, "%", strconv.Itoa(status))
		if found := regexp.MustCompile(pattern).FindAllString(get, -1); len(found) != 1 {
			t.Errorf("%d: adlock_get has %d times %s", status, len(found), pattern)
		}
	}
}

func TestTheLibraryKnowsEveryStatusOfTheHelper(t *testing.T) {
	list, _, _ := strings.Cut(strings.SplitAfter(body(t, "_adlock_answered"), "in\n")[1], ")")
	pattern := regexp.MustCompile("^(" + strings.ReplaceAll(strings.TrimSpace(list), " | ", "|") + ")$")
	var known []int
	for n := range 256 {
		if pattern.MatchString(strconv.Itoa(n)) {
			known = append(known, n)
		}
	}
	want := []int{
		StatusOK, StatusUsage, StatusUnavailable, StatusSystem, StatusCannotCreate, StatusIO, StatusDenied, StatusNotPermitted,
		AnswerTooSoon, AnswerBusy, AnswerFull, AnswerExpired, AnswerStuck, AnswerPaused,
	}
	check.Slices(t, "adlock.sh has", known, want)
}
