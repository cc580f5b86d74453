package lockdir

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/test/support/must"
)

// asked is a variable that makes this test a program: it prints what OwnedBy returns for that pid.
const asked = "ADLOCK_TEST_OWNER"

func TestOnlyThisProcessOrAnAncestorCanBeTheOwner(t *testing.T) {
	if pid := os.Getenv(asked); pid != "" {
		n, _ := strconv.Atoi(pid)
		id, err := locker.OwnedBy(n)
		_, untold := err.(fault.Untold)
		fmt.Println(id.PID, fault.KindOf(err), err, untold)
		os.Exit(0)
	}
	answer := func(prefix string, pid int) string {
		t.Helper()
		command := exec.Command("sh", "-c", prefix+`exec "$0" -test.run='^TestOnlyThisProcessOrAnAncestorCanBeTheOwner$'`, os.Args[0])
		command.Env = append(os.Environ(), asked+"="+strconv.Itoa(pid))
		out := must.Get(command.Output())(t)
		return strings.TrimSpace(string(out))
	}
	self, stranger := os.Getpid(), sleeper(t).PID
	refused := "0 " + strconv.Itoa(int(fault.Usage)) + " --owner: is not an ancestor of this process "
	for pid, want := range map[int]string{
		self:        strconv.Itoa(self) + " 0 <nil> false",
		stranger:    refused + "false",
		dead(t).PID: refused + "true",
	} {
		if got := answer("", pid); got != want {
			t.Errorf("owner %d: %s, want %s", pid, got, want)
		}
	}
	// The first process of a pid namespace is named as the owner by its child.
	if os.Getppid() == 1 {
		if id, err := locker.OwnedBy(1); err != nil || id.PID != 1 {
			t.Errorf("process 1, named: %v, %v", id.PID, err)
		}
	}
}
