package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// mustBeUnreached fails if a signal is pending for the process.
func mustBeUnreached(a *actor.Actor, claim string) {
	a.T.Helper()
	text := must.Get(os.ReadFile(path(a.PID(), "status")))(a.T)
	for _, field := range []string{"\nSigPnd:", "\nShdPnd:"} {
		_, line, _ := bytes.Cut(text, []byte(field))
		line, _, _ = bytes.Cut(line, []byte("\n"))
		if set, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64); err != nil || set != 0 {
			a.T.Errorf("%s: signals %x wait, %v", claim, set, err)
		}
	}
}

func withoutPidfds(t *testing.T) { actor.Set(t, &lastPidfd, func() int { return -1 }) }

func TestCheckingAProcessSendsItNoSignal(t *testing.T) {
	a, ended := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	a.Stop()
	ended.Kill()
	k := entryOf(a).Key()
	(band{Key: k}).gone()
	mustBeUnreached(a, "whether its group is gone")
	missing(a.PID(), unix.ENOENT)
	mustBeUnreached(a, "whether it is gone")
	PIDLives(a.PID())
	h, err := Hold(k, 0)
	if err != nil || h.Signal(0) != nil {
		t.Errorf("held: %v", err)
	}
	h.Close()
	mustBeUnreached(a, "whether it may be signalled")
	enough := actor.FewFiles(t, 0)
	e, there := hidden(a.PID())
	_, endedThere := hidden(ended.PID())
	lives := PIDLives(a.PID())
	enough()
	if mustBeUnreached(a, "without a descriptor"); !there || !lives || endedThere || e != (Entry{PID: a.PID(), PGID: a.PID(), SID: e.SID, Start: hiddenStart, Hidden: true}) {
		t.Errorf("there %v and %v, lives %v, %+v", there, endedThere, lives, e)
	}
}

func TestAPidfdMayHaveTheNumberZero(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	h := must.Get(Hold(entryOf(a).Key(), 0))(t)
	if h.fd < 0 {
		need.Skip(t, "no pidfds here")
	}
	saved := must.Get(unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3))(t)
	defer func() { unix.Dup3(saved, 0, 0); unix.Close(saved) }()
	must.Do(t, unix.Dup3(h.fd, 0, unix.O_CLOEXEC))
	h.Close()
	// The start counts only without a descriptor.
	zero := Handle{Key{h.PID, h.Start + 1}, 0}
	if err := zero.Signal(0); err != nil || zero.Exited() {
		t.Errorf("dead %v, %v", zero.Exited(), err)
	}
	if inodeOfPidfd(0) != inodeNow(a.PID()) {
		t.Error("it has another inode")
	}
	calls := 0 // a signal of the runtime may wake this process now and then
	for end := time.Now().Add(actor.Brief); time.Now().Before(end); calls++ {
		AwaitDeath([]Handle{{zero.Key, noPidfd}, zero}, time.Until(end))
	}
	if calls > 20 {
		t.Errorf("no process died, and the waiter was woken %d times", calls)
	}
	unix.Kill(a.PID(), unix.SIGKILL)
	actor.Eventually(t, "it is dead", zero.Exited)
	begun := time.Now()
	if !zero.Await(2*actor.Patient) || time.Since(begun) > actor.Patient {
		t.Error("its death does not wake the waiter")
	}
	zero.Close()
	if _, err := unix.FcntlInt(0, unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("it is not closed: %v", err)
	}
}

func TestAReusedPidIsNotSignalledWithoutPidfds(t *testing.T) {
	withoutPidfds(t)
	a := actor.Sleeper(t, actor.Leads)
	k := entryOf(a).Key()
	held, err := Hold(k, 4711) // without a pidfd the inode cannot be compared
	if err != nil || held.fd >= 0 || held.Exited() || held.Signal(0) != nil {
		t.Errorf("held %+v, %v", held, err)
	}
	k.Start++
	if stranger := (Handle{k, noPidfd}); stranger.Signal(unix.SIGKILL) != unix.ESRCH || !stranger.Exited() || gone(a.PID()) {
		t.Error("a stranger was signalled or taken for the one that is gone")
	}
	a.Kill()
	if err := held.Signal(0); err != unix.ESRCH || !held.Exited() {
		t.Errorf("dead %v, %v", held.Exited(), err)
	}
}

func TestProcessChecksLeakNoDescriptor(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	stranger := entryOf(a).Key()
	stranger.Start++
	member := Entry{PID: a.PID(), Start: entryOf(a).Start}
	before := actor.OpenFiles(t)
	for range 8 {
		if h, err := Hold(stranger, 0); err != unix.ESRCH || h.fd != noPidfd {
			t.Fatalf("held %+v, %v", h, err)
		}
		must.Do(t, member.Signal(0))
		inodeNow(a.PID())
		PIDLives(a.PID())
		hidden(a.PID())
		look(a.PID())
	}
	actor.Set(t, &lastPidfd, func() int { return 2 })
	for range 8 {
		if fd := openPidfd(a.PID()); fd != noPidfd {
			t.Fatalf("descriptor %d", fd)
		}
		findPidfs()
	}
	if after := actor.OpenFiles(t); after >= before+8 {
		t.Errorf("%d files were open, then %d", before, after)
	}
}

func TestAThreadIsNotTakenForAProcess(t *testing.T) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tasks) < 2 {
		t.Fatalf("%d threads, %v", len(tasks), err)
	}
	for _, task := range tasks {
		id, _ := strconv.Atoi(task.Name())
		if id == os.Getpid() {
			if ThreadOf(id) != 0 {
				t.Error("a process is taken for a thread")
			}
			continue
		}
		if got := ThreadOf(id); got != os.Getpid() {
			t.Errorf("%d is a thread of %d, want %d", id, got, os.Getpid())
		}
		if e, there := hidden(id); there {
			t.Errorf("a thread is %+v", e)
		}
		var thread *ThreadError
		if _, err := User(id); !errors.As(err, &thread) || thread.Process != os.Getpid() {
			t.Errorf("the user of a thread: %v", err)
		}
		list, err := scan{}.readForked(nil, id-1, id)
		if len(list) != 0 || err != nil {
			t.Errorf("%+v, %v", list, err)
		}
	}
	for _, id := range []int{0, -1, -os.Getpid(), -1 << 31} {
		if e, there := hidden(id); there || PIDLives(id) {
			t.Errorf("%d is %+v, and lives: %v", id, e, PIDLives(id))
		}
	}
}

func TestFifteenDescriptorsAreKeptFreeOfPidfds(t *testing.T) {
	for descriptors, want := range map[uint64]int{1024: 1008, 1 << 20: 1<<20 - 16, unix.RLIM_INFINITY: 1<<20 - 16} {
		if got := lastOf(descriptors); got != want {
			t.Errorf("of %d the last is %d, want %d", descriptors, got, want)
		}
	}
	fd := openPidfd(os.Getpid())
	if fd < 0 {
		need.Skip(t, "no pidfds here")
	}
	unix.Close(fd) // fd is now the lowest free descriptor
	actor.Set(t, &lastPidfd, func() int { return fd })
	if got := openPidfd(os.Getpid()); got != fd {
		t.Errorf("got %d where %d is the last", got, fd)
	}
	unix.Close(fd)
	lastPidfd = func() int { return fd - 1 }
	if got := openPidfd(os.Getpid()); got != noPidfd {
		t.Errorf("got %d where %d is the last", got, fd-1)
	}
}

// isLinux tells whether the kernel is of this version or a later one.
func isLinux(t *testing.T, major, minor int) bool {
	t.Helper()
	var name unix.Utsname
	must.Do(t, unix.Uname(&name))
	var is, point int
	fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &is, &point)
	return is > major || is == major && point >= minor
}

func TestPidfsIsFoundSinceLinux6_9(t *testing.T) {
	want := strconv.IntSize == 64 && isLinux(t, 6, 9)
	if found, err := findPidfs(); found != want || err != nil || pidfs() != want {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
	null := must.Get(os.Open(os.DevNull))(t)
	defer null.Close()
	for _, fd := range []int{noPidfd, int(null.Fd())} {
		if onPidfs(fd) {
			t.Errorf("%d is a pidfd", fd)
		}
	}
	actor.Set(t, &pidfs, func() bool { return false })
	if inode := inodeNow(os.Getpid()); inode != 0 {
		t.Errorf("the inode of all pidfds is %d", inode)
	}
	enough := actor.FewFiles(t, 0)
	_, err := findPidfs()
	if enough(); !errors.Is(err, unix.EMFILE) {
		t.Errorf("without a descriptor: %v", err)
	}
}

func TestPIDLivesNeedsNeitherPidfdsNorDescriptors(t *testing.T) {
	withoutPidfds(t)
	a := actor.Sleeper(t, actor.Leads)
	if !PIDLives(a.PID()) {
		t.Error("it does not live")
	}
	unix.Kill(a.PID(), unix.SIGKILL)
	actor.Eventually(t, "a zombie does not", func() bool { return !PIDLives(a.PID()) })
	a.Await()
	if PIDLives(a.PID()) {
		t.Error("a process that has exited is reported alive")
	}
	enough := actor.FewFiles(t, 0)
	self, ended := PIDLives(os.Getpid()), PIDLives(a.PID())
	enough()
	if !self || ended {
		t.Errorf("without a descriptor this process lives: %v; one that is gone: %v", self, ended)
	}
}

func TestADeathIsAwaitedOnlyThroughAPidfd(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	h := must.Get(Hold(entryOf(a).Key(), 0))(t)
	defer h.Close()
	if h.fd < 0 {
		need.Skip(t, "no pidfds here")
	}
	begun := time.Now()
	unix.Kill(a.PID(), unix.SIGKILL)
	for !h.Exited() && time.Since(begun) < actor.Patient { // a signal to this process wakes it too
		if !h.Await(2 * actor.Patient) {
			t.Fatal("nothing wakes")
		}
	}
	if !h.Exited() || time.Since(begun) > actor.Patient {
		t.Errorf("exited %v after %v", h.Exited(), time.Since(begun))
	}
	begun = time.Now()
	if (Handle{h.Key, noPidfd}).Await(2*actor.Patient) || time.Since(begun) > actor.Patient {
		t.Error("nothing wakes, and it was waited for")
	}
}
