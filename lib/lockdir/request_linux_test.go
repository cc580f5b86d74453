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
	answer := func(pid int) string {
		t.Helper()
		command := exec.Command(os.Args[0], "-test.run=^TestOnlyThisProcessOrAnAncestorCanBeTheOwner$")
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
		if got := answer(pid); got != want {
			t.Errorf("owner %d: %s, want %s", pid, got, want)
		}
	}
	for _, pid := range []int{self, os.Getppid()} { // in a pid namespace the parent may be process 1
		if id, err := locker.OwnedBy(pid); err != nil || id.PID != pid {
			t.Errorf("process %d, named: %v, %v", pid, id.PID, err)
		}
	}
}
