package hook

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"adlock/lib/runlog"
	"adlock/lib/sysfile"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// systemLog puts a log in place of the machine's. next returns its next message; "": there is none.
func systemLog(t *testing.T) (next func() string) {
	t.Helper()
	before := logSocket
	t.Chdir(helper.Dir(t)) // its path may be too long for a socket
	logSocket = "log"
	t.Cleanup(func() { logSocket = before })
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() { unix.Close(socket) })
		err = unix.Bind(socket, &unix.SockaddrUnix{Name: logSocket})
	}
	must.Do(t, err)
	return func() string {
		text := make([]byte, 64<<10)
		n, _ := unix.Read(socket, text) // a message is there at once, or never
		return string(text[:max(n, 0)])
	}
}

func TestAnEventIsOneSyslogMessageWithoutControlCharacters(t *testing.T) {
	next := systemLog(t)
	(&Hook{Syslog: true}).Tell(nil, happened(Fail))
	want := regexp.MustCompile(`^<12>[A-Z][a-z]{2} [ 1-3][0-9] [0-9:]{8} adlock\[[0-9]+\]: ` + sysfile.UserName(os.Geteuid()) + `: run \\x1b nightly:\\nfailed$`)
	if got := next(); !want.MatchString(got) {
		t.Errorf("%q", got)
	}
	check.Equal(t, "one more", next(), "")
}

func TestStartsAndSuccessesAreNotInTheSystemsLog(t *testing.T) {
	next := systemLog(t)
	for _, h := range []*Hook{{Syslog: true, Runs: true}, {}, nil} {
		h.Tell(nil, happened(Start))
		h.Tell(nil, happened(Success))
	}
	(&Hook{}).Tell(nil, happened(Fail))
	check.Equal(t, "what came", next(), "")
}

func TestALongMessageIsCutAtAKibibyteAndKeepsItsReason(t *testing.T) {
	next := systemLog(t)
	for _, operand := range []string{
		strings.Repeat("x", 3000), strings.Repeat("\x1b", 70000), strings.Repeat("é", 5000), strings.Repeat("a\xff", 5000),
	} {
		(&Hook{Syslog: true}).Say("run " + operand + ": failed with status 3")
		got := next()
		if !strings.Contains(got, ": run ") || !strings.HasSuffix(got, ": failed with status 3") {
			t.Errorf("%q", got)
		}
		if len(got) > 1024 || len(got) < 1020 {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) {
			t.Errorf("%q is cut within a letter", got)
		}
	}
}

func TestAFullOrMissingSystemLogDelaysNoCaller(t *testing.T) {
	next := systemLog(t)
	done := make(chan int)
	go func() {
		h := &Hook{Syslog: true}
		for range 10_000 { // the queue holds ten by default
			h.Tell(&runlog.Log{}, happened(Fail))
		}
		done <- 1
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits for the log")
	}
	if _, err := LogSocket(); !errors.Is(err, errFull) {
		t.Errorf("a full queue: %v", err)
	}
	if next() == "" {
		t.Error("nothing came")
	}
	if path, err := LogSocket(); err != nil || path != logSocket {
		t.Error(path, err)
	}
	logSocket += "-not-there"
	(&Hook{Syslog: true}).Say("x")
	if _, err := LogSocket(); err == nil {
		t.Error("a log that is not there takes messages")
	}
}
