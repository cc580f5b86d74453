package lockfile

import (
	"os"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/policy"
	"adlock/test/support/must"
)

func tick(number int) policy.Tick { return policy.Tick{Period: time.Hour, Number: number} }

func anyTick(time.Duration, int) bool { return true }

func tickFile(name atom.Name, number int) string { return name.Tick(time.Hour, number) }

// wantTicks wants these tick files, and no others.
func wantTicks(t *testing.T, d *Dir, claim string, want ...string) {
	t.Helper()
	files := must.Get(d.Files(atom.Tick))(t)
	for _, file := range want {
		if !exists(d, file) {
			t.Errorf("%s: %s is not there", claim, file)
		}
	}
	if len(files) != len(want) {
		t.Errorf("%s: there are %v, want %q", claim, files, want)
	}
}

func TestEachAtomClaimsATickOnce(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	d := newDir(t)
	const name, other = atom.Name(reads), atom.Name("p.h.o.y")
	for _, c := range []struct {
		name    atom.Name
		tick    policy.Tick
		claimed bool
	}{{name, tick(20), true}, {name, tick(20), false}, {other, tick(20), true}, {name, tick(21), true}} {
		used := must.Get(d.HasTick(c.name, c.tick))(t)
		if claimed := must.Get(d.ClaimTick(c.name, c.tick))(t); used == c.claimed || claimed != c.claimed {
			t.Errorf("%s %d: used %v, claimed %v", c.name, c.tick.Number, used, claimed)
		}
	}
	if claimed, err := (&Dir{fd: -1}).ClaimTick(name, tick(1)); claimed || err == nil {
		t.Errorf("without a directory: claimed %v, %v", claimed, err)
	}
	if info := must.Get(os.Lstat(d.Path(tickFile(name, 20))))(t); info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestOutdatedAndWithdrawnTicksAreRemoved(t *testing.T) {
	d := newDir(t)
	const name, other = atom.Name(reads), atom.Name("p.h.o.y")
	for _, number := range []int{20, 21, 30} {
		for _, of := range []atom.Name{other, name} {
			must.Get(d.ClaimTick(of, tick(number)))(t)
		}
	}
	wantTicks(t, d, "claimed", tickFile(name, 21), tickFile(name, 30), tickFile(other, 21), tickFile(other, 30))
	must.Do(t, d.RemoveTick(name, policy.Tick{Number: 21}))
	wantTicks(t, d, "none asked for", tickFile(name, 21), tickFile(name, 30), tickFile(other, 21), tickFile(other, 30))
	must.Do(t, d.RemoveTick(name, tick(21)))
	must.Do(t, d.RemoveTick(name, tick(21)))
	wantTicks(t, d, "taken back", tickFile(name, 30), tickFile(other, 21), tickFile(other, 30))
	must.Do(t, d.RemoveTicks(must.Get(d.Files(atom.Tick))(t), other, anyTick))
	wantTicks(t, d, "all of one", tickFile(name, 30))
}
