package process

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// The table is read again from the last pid or, if the pids started again, as a whole, until no pid
// has been handed out meanwhile.
func TestTheProcessTableIsReadAgainUntilNoProcessForks(t *testing.T) {
	for claim, c := range map[string]struct {
		last []int // the last pid at each look
		want string
	}{
		"no process forks":               {[]int{5, 5}, "whole"},
		"a process forks":                {[]int{5, 7, 7}, "whole 5-7"},
		"two processes fork":             {[]int{5, 7, 8, 8}, "whole 5-7 7-8"},
		"the pids start again":           {[]int{5, 2, 2}, "whole whole"},
		"the last pid is unknown":        {[]int{0, 0}, "whole"},
		"the pids start again and go on": {[]int{5, 2, 4, 4}, "whole whole 2-4"},
	} {
		var did []string
		list, err := steadyTable(
			func() (int, error) { n := c.last[0]; c.last = c.last[1:]; return n, nil },
			func() ([]Entry, error) { did = append(did, "whole"); return []Entry{{PID: 1}}, nil },
			func(list []Entry, after, upTo int) ([]Entry, error) {
				did = append(did, fmt.Sprint(after, "-", upTo))
				return append(list, Entry{PID: upTo}), nil
			})
		if got := strings.Join(did, " "); got != c.want || err != nil || list[0].PID != 1 || len(list) != 1+strings.Count(got, "-") {
			t.Errorf("%s: %s, %v, %v", claim, got, list, err)
		}
	}
}

func TestReadingTheProcessTableEndsThoughForksGoOn(t *testing.T) {
	pid, calls := 0, 0
	list, err := steadyTable(
		func() (int, error) { pid++; return pid, nil },
		func() ([]Entry, error) { return []Entry{{PID: 1}}, nil },
		func(list []Entry, _, _ int) ([]Entry, error) { calls++; return list, nil })
	if calls != 1000 || len(list) != 1 || err != nil {
		t.Errorf("%d calls, %v, %v", calls, list, err)
	}
}

func TestAProcessTableThatCannotBeReadIsAnError(t *testing.T) {
	pid := 0
	forked := func([]Entry, int, int) ([]Entry, error) { return nil, unix.EIO }
	for claim, whole := range map[string]error{"at first": unix.EIO, "later": nil} {
		_, err := steadyTable(func() (int, error) { pid++; return pid, nil }, func() ([]Entry, error) { return nil, whole }, forked)
		if err != unix.EIO {
			t.Errorf("%s: %v", claim, err)
		}
	}
	calls := 0
	forked = func([]Entry, int, int) ([]Entry, error) {
		if calls++; calls < 1000 {
			return nil, nil
		}
		return nil, unix.EIO
	}
	if _, err := steadyTable(func() (int, error) { pid++; return pid, nil }, func() ([]Entry, error) { return nil, nil }, forked); err != unix.EIO {
		t.Errorf("at last: %v", err)
	}
	if _, err := (scan{}).readListed(filepath.Join(t.TempDir(), "none"), nil, 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no directory: %v", err)
	}
	plain := actor.File(t, "plain")
	must.Do(t, os.WriteFile(plain, nil, 0o600))
	if _, err := (scan{}).readListed(plain, nil, 0, 1); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("of a file: %v", err)
	}
}

func TestOnlyPidsInTheGivenRangeAreAddedToTheTable(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	looksUp := make([]Entry, 8) // as many that it looks the pids up, and lists no directory
	for _, c := range []struct {
		after, upTo int
		want        bool
	}{{a.PID() - 1, a.PID(), true}, {a.PID() - 2, a.PID() + 1, true}, {a.PID(), a.PID(), false}, {a.PID() - 2, a.PID() - 1, false}, {a.PID(), a.PID() + 1, false}} {
		for _, before := range [][]Entry{nil, looksUp} {
			list, err := scan{}.readForked(before, c.after, c.upTo)
			if got := slices.ContainsFunc(list, func(e Entry) bool { return e.PID == a.PID() }); got != c.want || err != nil {
				t.Errorf("from %d to %d, %d before: %v, %v", c.after, c.upTo, len(before), got, err)
			}
		}
	}
}

// On a machine that forks all the time, a process that is starved would else fall behind for ever.
func TestUnusedPidsAreNotLookedUpOneByOne(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	read := make(chan bool, 1)
	go func() {
		list, err := scan{}.readForked(nil, 1, math.MaxInt)
		read <- err == nil && slices.ContainsFunc(list, func(e Entry) bool { return e.PID == a.PID() })
	}()
	select {
	case found := <-read:
		if !found {
			t.Errorf("%d is not found", a.PID())
		}
	case <-time.After(helper.Patience):
		t.Error("each pid is looked up")
	}
}

func TestTheLastPidIsReadFromLoadavg(t *testing.T) {
	for text, want := range map[string]int{
		"0.00 0.01 0.05 1/123 4711\n": 4711, "0.00 0.01 0.05 1/123\n": 0, "": 0, "0.00 0.01 0.05 1/123 x\n": 0,
		"0.00 0.01 0.05 1/123 99999999999999999999\n": 0,
	} {
		if got := lastPIDOf([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	a := actor.Sleeper(t, actor.Leads)
	if got, err := lastPID(); err != nil || got < a.PID() && got > a.PID()-100 {
		t.Errorf("the last pid is %d after %d", got, a.PID())
	}
}

func TestANumberInAStatusFileIsReadOrRefused(t *testing.T) {
	text := []byte("Name:\tUid:\nTgid:\t7\nUid:\t1\t2\nGid:\t3\t4\t5\nBad:\tx\n")
	for _, c := range []struct {
		field  string
		column int
		want   int
		err    bool
	}{{"Tgid:", 0, 7, false}, {"Uid:", 1, 2, false}, {"Uid:", 2, 0, true}, {"Uid:", 3, 0, true}, {"Gid:", 2, 5, false}, {"None:", 0, 0, true}, {"Bad:", 0, 0, true}} {
		if got, err := statusNumber(text, c.field, c.column); got != c.want || (err != nil) != c.err {
			t.Errorf("%s %d: %d, %v", c.field, c.column, got, err)
		}
	}
}

func init() {
	actor.Roles["three users"] = func(args []string) int {
		if syscall.Setresuid(11, 12, 13) != nil {
			return 1
		}
		os.Stdout.WriteString("ready\n")
		unix.Pause()
		return 0
	}
}

func TestAProcessBelongsToItsEffectiveUser(t *testing.T) {
	need.Root(t)
	a := actor.Play(t, actor.Leads, "three users")
	actor.Eventually(t, "it is three users", func() bool {
		text, err := os.ReadFile(path(a.PID(), "status"))
		return err == nil && strings.Contains(string(text), "\t11\t12\t13\t")
	})
	if id := idOf(a); id.UID != 12 {
		t.Errorf("user %d", id.UID)
	}
}

func TestADeadProcessHasNoUserAndNoParent(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	if above, err := ParentOf(a.PID()); above.PID != os.Getpid() || err != nil {
		t.Errorf("its parent is %+v, %v", above, err)
	}
	a.Kill()
	if uid, err := User(a.PID()); uid != 0 || err != unix.ESRCH {
		t.Errorf("its user is %d, %v", uid, err)
	}
	if pid, err := parent(a.PID()); pid != 0 || err != unix.ESRCH {
		t.Errorf("its parent is %d, %v", pid, err)
	}
	for _, c := range []struct {
		e    Entry
		want error
	}{{Entry{Hidden: true}, unix.EPERM}, {Entry{Hidden: true, Parent: 7}, nil}, {Entry{Parent: 7}, nil}, {Entry{}, nil}} {
		if pid, err := c.e.above(); pid != c.e.Parent || err != c.want {
			t.Errorf("%+v: the parent is %d, %v", c.e, pid, err)
		}
	}
}

// treeOf writes files below a new root; a content that begins with -> is a link.
func treeOf(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir() + "/"
	for name, content := range files {
		must.Do(t, os.MkdirAll(filepath.Dir(root+name), 0o700))
		var err error
		if target, link := strings.CutPrefix(content, "->"); link {
			err = os.Symlink(target, root+name)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(root+name, 0o700)
		} else {
			err = os.WriteFile(root+name, []byte(content), 0o600)
		}
		must.Do(t, err)
	}
	return root
}

func TestBootAndMachineAreReadOrReportedUnreadable(t *testing.T) {
	selfPID := strconv.Itoa(os.Getpid())
	self := "->" + selfPID
	const boot, machine, dbus = "proc/sys/kernel/random/boot_id", "etc/machine-id", "var/lib/dbus/machine-id"
	for claim, c := range map[string]struct {
		files map[string]string
		want  Identity
		err   string
	}{
		"all is there":          {map[string]string{"proc/self": self, boot: "b\n", machine: "m\n", dbus: "d\n"}, Identity{Boot: "b", Machine: "m"}, ""},
		"only dbus has one":     {map[string]string{"proc/self": self, boot: "b\n", machine: "\n", dbus: "d\n"}, Identity{Boot: "b", Machine: "d"}, ""},
		"an id of two lines":    {map[string]string{"proc/self": self, boot: "b\n", machine: "m\r\nn\n"}, Identity{Boot: "b", Machine: "m"}, ""},
		"a first boot":          {map[string]string{"proc/self": self, boot: "b\n", machine: "uninitialized\n"}, Identity{Boot: "b"}, ""},
		"nothing but /proc":     {map[string]string{"proc/self": self}, Identity{Boot: thisBoot}, ""},
		"an empty boot id":      {map[string]string{"proc/self": self, boot: ""}, Identity{Boot: thisBoot}, ""},
		"the boot is unread":    {map[string]string{"proc/self": self, boot + "/": ""}, Identity{}, "is a directory"},
		"the machine is unread": {map[string]string{"proc/self": self, machine: "->machine-id"}, Identity{}, "too many levels of symbolic links"},
		"the dbus id is unread": {map[string]string{"proc/self": self, dbus: "->machine-id"}, Identity{}, "too many levels of symbolic links"},
		"pid ns is unread":      {map[string]string{"proc/self": self, "proc/" + selfPID + "/ns/pid": "->pid"}, Identity{}, "too many levels of symbolic links"},
		"time ns is unread":     {map[string]string{"proc/self": self, "proc/" + selfPID + "/ns/time": "->time"}, Identity{}, "too many levels of symbolic links"},
		"/proc is not mounted":  {nil, Identity{}, "is not mounted"},
		"/proc is another's":    {map[string]string{"proc/self": "->1234567"}, Identity{}, "another pid namespace"},
		"/proc is no directory": {map[string]string{"proc": ""}, Identity{}, "not a directory"},
		"/proc/self is no link": {map[string]string{"proc/self": ""}, Identity{}, "invalid argument"},
	} {
		got, err := place(treeOf(t, c.files))
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v", claim, got, err)
		}
	}
}

func TestProcMayHideProcessesIfItsOptionsSaySoOrAreUnreadable(t *testing.T) {
	const open, hides = "proc /proc proc rw,nosuid 0 0\n", "proc /proc proc rw,hidepid=invisible 0 0\n"
	for mounts, want := range map[string]bool{
		"": false, open: false, hides: true, open + hides: true, hides + open: false,
		"proc /mnt proc rw,hidepid=2 0 0\n": false, "x /proc\n": false, "x /proc proc\n": false, "x /proc proc hidepid=2\n": true,
		"/dev/hidepid /proc proc rw 0 0\n": false,
	} {
		if got := mayHide(treeOf(t, map[string]string{"mounts": mounts}) + "mounts"); got != want {
			t.Errorf("%q: %v", mounts, got)
		}
	}
	if !mayHide(actor.File(t, "none")) {
		t.Error("mounts that cannot be read: taken to hide no process")
	}
}

func TestACutPidInTheListOfChildrenIsIgnored(t *testing.T) {
	for list, want := range map[string][]int{"": {1}, "12 ": {1, 12}, "12 34 ": {1, 12, 34}, "12 34 5": {1, 12, 34}, "5": {1}} {
		if got := appendPIDs([]int{1}, []byte(list)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", list, got, want)
		}
	}
	a, b := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	if got := Children(os.Getpid()); !slices.Contains(got, a.PID()) || !slices.Contains(got, b.PID()) {
		t.Errorf("%v are not all children: %d, %d", got, a.PID(), b.PID())
	}
}

func TestALackOfDescriptorsIsReportedAndProvesNoDeath(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	id := idOf(a)
	enough := actor.FewFiles(t, 0)
	_, of := Of(a.PID())
	_, read := scan{}.readOne(nil, a.PID())
	_, above := parent(a.PID())
	_, uid := User(a.PID())
	life := id.Life()
	remains := Job{Owner: id}.Remains()
	member := Entry{PID: a.PID(), Start: id.Start}.Signal(unix.SIGKILL)
	forked, forkErr := scan{}.readForked(nil, a.PID()-1, a.PID())
	enough()
	enough = actor.FewFiles(t, 1)
	_, whole := scan{}.readListed("/proc", nil, 0, math.MaxInt)
	enough()
	if len(forked) > 0 || !errors.Is(forkErr, unix.EMFILE) {
		t.Errorf("forked: %+v, %v", forked, forkErr)
	}
	for claim, err := range map[string]error{"whole table": whole, "of": of, "read": read, "parent": above, "user": uid, "signal": member} {
		if !errors.Is(err, unix.EMFILE) {
			t.Errorf("%s: %v", claim, err)
		}
	}
	if life != Unknown || !remains || gone(a.PID()) {
		t.Errorf("life %v, remains %v, gone %v", life, remains, gone(a.PID()))
	}
}
