package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
	"adlock/test/support/helper"
	setup "adlock/test/support/must"
	"adlock/test/support/need"
)

var nobody = otherUser{Name: "nobody", UID: 65534, GID: 65534, Groups: []int{12345}}

var ample = readingLimits{Silence: time.Minute, Whole: time.Minute}

func TestUsersAreReadFromPasswdAndGroup(t *testing.T) {
	dir := t.TempDir()
	passwd, group := filepath.Join(dir, "passwd"), filepath.Join(dir, "group")
	for path, text := range map[string]string{
		passwd: "root:x:0:0::/root:/bin/sh\none:x:7:8::/home/one:/bin/sh\ntwin:x:7:9::/x:/bin/sh\n+::::::\n\nbad:x:x:1::/:\nmax:x:4294967295:1::/:\nneg:x:-1:1::/:\ntwo:x:9:9::relative:/bin/sh\none:x:10:9::/x:/bin/sh\n",
		group:  "a:x:5:one,two\nb:x:6:someone\nc:x:8:two\n",
	} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	users, err := usersIn(passwd, group)
	if got := fmt.Sprint(users, err); got != "[{root 0 0 [] /root} {one 7 8 [5] /home/one} {two 9 9 [5 8] } {10 10 9 [5] /x}] <nil>" {
		t.Error(got)
	}
	if _, err := usersIn(passwd, filepath.Join(dir, "none")); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestOnlyTheReadingThreadHasTheUsersRights(t *testing.T) {
	need.Root(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("x"), 0o600))
	_, err := doAs(nobody, ample, func(func() bool) ([]byte, error) { return os.ReadFile(secret) })
	if !errors.Is(err, unix.EACCES) {
		t.Errorf("a file of root: %v", err)
	}
	status, err := doAs(nobody, ample, func(func() bool) (string, error) {
		text, err := os.ReadFile("/proc/thread-self/status")
		return string(text), err
	})
	must(t, err)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var own [2]unix.CapUserData // a container's root may lack CAP_SYS_PTRACE
	must(t, unix.Capget(&header, &own[0]))
	rights := fmt.Sprintf("CapEff:\t%016x\n", own[0].Effective&0x80020)
	for _, want := range []string{"Uid:\t0\t0\t0\t65534\n", "Gid:\t0\t0\t0\t65534\n", "Groups:\t12345 \n", rights} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in %s", want, status)
		}
	}
	for range 100 { // no later goroutine runs on the thread that has lost root's rights
		done := make(chan error)
		go func() { _, err := os.ReadFile(secret); done <- err }()
		must(t, <-done)
	}
}

func TestDoAsRefusesRootAndInvalidUsers(t *testing.T) {
	need.Root(t)
	for _, uid := range []int{0, 1<<32 - 1} {
		called := false
		_, err := doAs(otherUser{Name: "x", UID: uid, GID: 1}, ample, func(func() bool) (int, error) { called = true; return 0, nil })
		if err == nil || called {
			t.Errorf("%d: %v", uid, err)
		}
	}
}

func TestDoAsGivesUpOnASilentReader(t *testing.T) {
	need.Root(t)
	release := make(chan struct{})
	defer close(release)
	_, err := doAs(nobody, readingLimits{Silence: 20 * time.Millisecond, Whole: time.Minute}, func(alive func() bool) (int, error) {
		alive()
		<-release
		return 0, nil
	})
	if !errors.Is(err, errSilent) {
		t.Error(err)
	}
}

func TestAliveIsFalseOnceTheWholeTimeHasPassed(t *testing.T) {
	need.Root(t)
	n, err := 0, error(nil)
	for end := time.Now().Add(helper.Patience); n == 0 && err == nil && time.Now().Before(end); { // the time may be up before the thread begins
		n, err = doAs(nobody, readingLimits{Silence: time.Minute, Whole: 20 * time.Millisecond}, func(alive func() bool) (n int, err error) {
			for alive() {
				n++
			}
			return n, nil
		})
	}
	if n == 0 || err != nil {
		t.Error(n, err)
	}
}

func TestOpenBelowFollowsNoLinkBelowItsBase(t *testing.T) {
	dir := t.TempDir()
	must(t, errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o700), os.Symlink("a", filepath.Join(dir, "l")),
		os.Symlink("b", filepath.Join(dir, "a/m"))))
	for _, names := range [][]string{{"l", "b"}, {"a", "m"}, {"a", "none"}} {
		if fd, err := openBelow(dir, names...); err == nil {
			t.Errorf("%q: %d", names, fd)
		}
	}
	fd := setup.Get(openBelow(filepath.Join(dir, "l"), "b"))(t) // a link in base is root's, like /home
	unix.Close(fd)
}

func TestNamesInListsNoMoreFilesThanAskedFor(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	fd := setup.Get(openBelow(filepath.Dir(dir), filepath.Base(dir)))(t)
	defer unix.Close(fd)
	for most, want := range map[int]int{5: 5, 20: 20, 30: 20} {
		names, more, err := namesIn(fd, most)
		if err != nil || len(names) != want || more != (most < 20) {
			t.Errorf("%d: %d, %v, %v", most, len(names), more, err)
		}
	}
}

func init() {
	if os.Getenv("ADLOCK_TEST_SLOW_READER") != "" {
		_, err := doAs(nobody, readingLimits{Silence: 300 * time.Millisecond, Whole: time.Minute}, func(func() bool) (int, error) {
			if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
				return 0, err
			}
			return os.Stdin.Read(make([]byte, 1))
		})
		fmt.Println(err)
		os.Exit(0)
	}
}

// A stopped process stands for a machine too busy to run the reader and the loop that waits for it. It
// stops itself: before another process did so, its silence might be over.
func TestAStoppedReaderDoesNotCountAsSilent(t *testing.T) {
	need.Root(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "ADLOCK_TEST_SLOW_READER=1")
	file, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	must(t, errors.Join(err1, err2, c.Start()))
	helper.Eventually(t, "it is stopped", func() bool { return actor.State(c.Process.Pid) == "T" })
	time.Sleep(time.Second) // the test is that this time does not count
	_, wrote := file.Write([]byte("x"))
	must(t, errors.Join(wrote, c.Process.Signal(unix.SIGCONT)))
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "<nil>\n" || err != nil {
		t.Error(said, err)
	}
	_ = c.Wait() // what it printed is its result
}
