package supervise

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A newcomer that is killed while it ends the job leaves it like this: the
// command died of TERM, and a child ignores it.
func TestJobWhoseCommandDiedOfASignalIsNotOverBeforeItsChildren(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	st := rehearse(t, setup{Args: sh(dir, `(trap '' TERM; exec cat "$1/fifo" >/dev/null 2>&1) & echo $! >"$1/child"; kill -TERM $$`)})
	st.begin()
	child := pidIn(t, filepath.Join(dir, "child"))
	select {
	case <-st.over:
		t.Errorf("the supervisor is done, and the child lives: %v", lives(child))
		syscall.Kill(child, syscall.SIGKILL)
		return
	case <-time.After(300 * time.Millisecond):
	}
	writer, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	writer.Close() // the end of the child's file
	status, rep := st.end()
	if status != 143 || rep.Result.Signal != syscall.SIGTERM || rep.Result.Alive || rep.Err != "" {
		t.Errorf("status %d, %+v, error %q", status, rep.Result, rep.Err)
	}
	mustBeGone(t, child)
}

func TestWhatOutlivedTheCommandIsEndedWithTheSupervisor(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Args: sh(dir, `(trap '' INT TERM; exec sleep 60 >/dev/null 2>&1) & echo $! >"$1/child"; kill -KILL $$`)})
	supervisor := st.begin().PID
	child := pidIn(t, filepath.Join(dir, "child"))
	signalTo(t, supervisor, syscall.SIGTERM)
	status, rep := st.end()
	if status != 137 || !rep.Result.Ended || rep.Result.Alive || rep.Err != "" {
		t.Errorf("status %d, %+v, error %q", status, rep.Result, rep.Err)
	}
	mustBeGone(t, child)
}
