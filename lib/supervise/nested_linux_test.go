package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/killer"
	"adlock/lib/process"
	"adlock/test/support/must"
)

// nested prepares a supervisor whose job is another supervisor. The inner job records its signals.
func nested(t *testing.T) (st *stage, inner, file string) {
	t.Helper()
	dir := t.TempDir()
	file, inner = filepath.Join(dir, "parent"), filepath.Join(dir, "inner")
	st = rehearse(t, setup{Args: []string{os.Args[0]}, Nested: &setup{
		Role: "listener", Args: []string{os.Args[0], "parent", file}, Report: inner, Pause: patience}})
	return st, inner, file
}

func TestANestedSupervisorsJobGetsEachSignalOnce(t *testing.T) {
	for claim, onTerminal := range map[string]bool{"off a terminal": false, "on a terminal": true} {
		t.Run(claim, func(t *testing.T) {
			st, _, file := nested(t)
			if onTerminal {
				st.onTerminal(false)
			}
			rep := st.begin()
			heard(t, file, 1)
			heard(t, file+".child", 1)
			sent := []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1}
			want := "terminated,continued,terminated,hangup,user defined signal 1"
			if !onTerminal { // on a terminal INT and QUIT come from the keyboard
				sent, want = append(sent, syscall.SIGINT, syscall.SIGQUIT), want+",interrupt,quit"
			}
			toAll := 0
			for i, sig := range sent {
				signalTo(t, rep.PID, sig)
				heard(t, file, i+2)
				if sig != syscall.SIGHUP && sig != syscall.SIGUSR1 { // HUP and USR1 go only to the command
					toAll++
				}
				heard(t, file+".child", toAll+1)
			}
			signalTo(t, rep.PID, syscall.SIGUSR2)
			if got := strings.Join(heard(t, file, len(sent)+2)[1:], ","); got != want+",user defined signal 2" {
				t.Errorf("the command heard %s", got)
			}
			st.stdin.Close()
			st.wantEnd(7)
			want = strings.ReplaceAll(strings.ReplaceAll(want, ",hangup", ""), ",user defined signal 1", "")
			if got := strings.Join(heard(t, file+".child", toAll+1)[1:], ","); got != want {
				t.Errorf("its child heard %s", got)
			}
		})
	}
}

func TestEndingAnOuterJobSendsANestedJobEachSignalOnce(t *testing.T) {
	st, inner, file := nested(t)
	rep := st.begin()
	heard(t, file, 1)
	heard(t, file+".child", 1)
	owner := must.Get(process.Of(rep.PID))(t)
	ended := make(chan error, 1)
	go func() {
		k := killer.Killer{Pause: 100 * time.Millisecond, Observe: func(s signalled) {
			if s.Signal != "TERM" {
				return
			}
			for _, name := range []string{file, file + ".child"} {
				if heard(t, name, 1)[0] == fmt.Sprint("ready ", s.PID) {
					heard(t, name, 4) // or KILL may come before it has written that
				}
			}
		}}
		ended <- k.End(process.Job{Owner: owner, FileUID: -1, Supervised: true})
	}()
	for _, name := range []string{file, file + ".child"} {
		got := heard(t, name, 4)[1:]
		slices.Sort(got) // the runtime keeps no order of two signals that come together
		if !slices.Equal(got, []string{"continued", "interrupt", "terminated"}) {
			t.Errorf("%s: heard %s", name, got)
		}
	}
	st.stdin.Close()
	must.Do(t, <-ended)
	st.end()
	st.setup.Report = inner
	mustBeGone(t, rep.PID, st.report().PID)
}
