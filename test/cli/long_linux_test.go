package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/helper"
)

// An argument has at most 128 KiB (MAX_ARG_STRLEN, execve(2)).
func long(letter string, count int) []string {
	return slices.Repeat([]string{strings.Repeat(letter, 100<<10)}, count)
}

func (s *stage) locksIn() []string {
	locks, _ := filepath.Glob(s.locks + "/lock.*")
	return locks
}

// jobs counts the locks whose owners have started their jobs, and appended them to the lock.
// (Without a name, the lock has the command line too, before that, as command="…".)
func (s *stage) jobs() (n int) {
	for _, lock := range s.locksIn() {
		text, _ := os.ReadFile(lock) // a lock that is gone by now does not count
		_, appended, _ := strings.Cut(string(text), "\nend=\n")
		n += strings.Count(appended, "command=")
	}
	return n
}

func TestACommandLineOfAMebibyteCanBeAnAtom(t *testing.T) {
	for claim, words := range map[string][]string{"1.2 MiB": long("x", 12), "400 KiB of control bytes": long("\x01", 4)} {
		t.Run(claim, func(t *testing.T) {
			s := newStage(t)
			line := append([]string{"run", "--expire-after=auto", "--from-start", "--", "sh", "-c", "exec sleep 600", "sh"}, words...)
			another := append(append([]string{}, line...), "y")
			owner := s.command(line...).Start(t)
			helper.Eventually(t, "its job runs", func() bool { return s.jobs() == 1 || owner.Ended() })
			owner.Lives(t)
			lock := s.locksIn()[0]
			if info, err := os.Stat(lock); err != nil || info.Size() > 64<<10 {
				t.Errorf("the lock has %d bytes (%v)", info.Size(), err)
			}
			s.want(75, line...)
			other := s.command(another...).Start(t)
			helper.Eventually(t, "another command line is another atom", func() bool { return s.jobs() == 2 || other.Ended() })
			other.Signal(t, syscall.SIGTERM)
			other.Is(t, 128+15, "…")
			wantWords(t, s.want(0, "status").Out, "running")
			owner.Kill(t)
			helper.KillSession(owner.PID)
			helper.Eventually(t, "its job is gone", func() bool { return len(helper.Session(owner.PID)) == 0 })
			s.want(0, "clear", lock)
			if left := s.locksIn(); len(left) != 0 {
				t.Errorf("%q are left", left)
			}
			s.want(0, append([]string{"run", "--program=sh", "--", "true"}, words...)...)
			for _, verb := range []string{"status", "log", "report", "tune", "timeline", "metrics"} {
				// A hundred lines of metrics have 4 KiB of the command each, with four bytes for each byte.
				if r := s.want(0, verb); len(r.Out) > 4<<20 {
					t.Errorf("%s says %d bytes", verb, len(r.Out))
				}
			}
		})
	}
}
