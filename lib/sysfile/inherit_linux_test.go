package sysfile

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// makers open descriptors that no child may have.
func makers(t *testing.T) map[string]func() ([]int, error) {
	file := filepath.Join(t.TempDir(), "file")
	return map[string]func() ([]int, error){
		"SocketPair": func() ([]int, error) { ours, theirs, err := SocketPair(); return []int{ours, theirs}, err },
		"Socket":     func() ([]int, error) { fd, err := Socket(unix.SOCK_STREAM); return []int{fd}, err },
		"Openat": func() ([]int, error) {
			fd, err := Openat(unix.AT_FDCWD, file, unix.O_WRONLY|unix.O_CREAT, 0o600)
			return []int{fd}, err
		},
		"Open": func() ([]int, error) { fd, err := Open("/dev/null", unix.O_RDWR); return []int{fd}, err },
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func TestNoChildInheritsADescriptorThatThisPackageOpens(t *testing.T) {
	for name, open := range makers(t) {
		fds := must.Get(open())(t)
		for _, fd := range fds {
			check.Equal(t, "a child has "+name, inherited(t, fd), false)
		}
		closeAll(fds)
	}
	check.Equal(t, "a child has standard output", inherited(t, 1), true)
}

// inherited reports whether a child has the descriptor open. It uses ForkExec, because package exec
// passes on no descriptors. The child opens no descriptor for its check.
func inherited(t *testing.T, fd int) bool {
	t.Helper()
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", `[ -e "/proc/$$/fd/$1" ]`, "sh", strconv.Itoa(fd)},
		&syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	must.Do(t, err)
	status, err := Wait(pid)
	if err != nil || !status.Exited() || status.ExitStatus() > 1 {
		t.Fatalf("the child: %v, %v", status, err)
	}
	return status.ExitStatus() == 0
}

// A child forked after the socket is made and before it is marked close-on-exec would keep it.
func TestNoSocketIsMadeWhileAThreadForks(t *testing.T) {
	for _, name := range []string{"SocketPair", "Socket"} {
		open := makers(t)[name]
		done := make(chan []int, 1)
		failed := make(chan error, 1)
		syscall.ForkLock.Lock() // as ForkExec does
		go func() {
			fds, err := open()
			failed <- err
			done <- fds
		}()
		helper.Eventually(t, name+" waits for the fork", func() bool { return len(done) > 0 || waits("sync.(*RWMutex).RLock", "sysfile."+name+"(") })
		if len(done) > 0 {
			t.Errorf("%s did not wait for the fork", name)
		}
		syscall.ForkLock.Unlock()
		must.Do(t, within(t, failed))
		closeAll(within(t, done))
	}
}
