package lease

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// Cloned machines have one id: an owner in another boot may live on another machine.
func TestAnotherBootProvesNoDeathInAStore(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	dead, err := process.Of(child.Process.Pid)
	_ = child.Process.Kill()
	_ = child.Wait()
	if err != nil {
		t.Fatal(err)
	}
	self, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := self
	elsewhere.Boot = "another"
	for _, c := range []struct {
		claim string
		owner process.Identity
		want  policy.Owner
	}{
		{"of another boot", elsewhere, policy.Lives},
		{"of this boot, and dead", dead, policy.Gone},
	} {
		seen := &Snapshot{Held: true, Owner: Record{Record: record.Record{Owner: c.owner, Token: "t"}, Node: "n", Taken: time.Now()}}
		if got := (&Locker{}).ownerOf(seen); got != c.want {
			t.Errorf("an owner %s is %v, want %v", c.claim, got, c.want)
		}
	}
}
