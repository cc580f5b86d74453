package network

import (
	"path/filepath"
	"strings"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/must"
	"adlock/test/support/relay"
)

// If a server keeps a file under another name, newcomers do not find the lock.
func TestNothingRunsOnAnFTPServerThatChangesNames(t *testing.T) {
	t.Parallel()
	for lie, rename := range map[string]func(name string) string{
		"it lowers case":                strings.ToLower,
		"it cuts names at 30 bytes":     func(name string) string { return name[:min(len(name), 30)] },
		"it cuts heartbeat names alone": func(name string) string { return name[:min(len(name), 38)] },
		"it has names of eight letters": func(name string) string { return name[:min(len(name), 8)] },
	} {
		t.Run(lie, func(t *testing.T) {
			f := startFTP(t, "")
			p := relay.NewTeller(t, "127.0.0.1", f.Address)
			p.Set(func() { p.Named = rename })
			h := f.hostBy(t, p.Address())
			for _, wait := range []string{"0", "forever"} { // no wait helps
				h.run(t, "echo ran", "--operand=Upper", "--wait="+wait).Refused(t, 69, "does not list ")
			}
			if left, err := filepath.Glob(f.Root + "/lock.*"); len(left) > 0 || err != nil {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestNothingRunsOnAnFTPServerThatOnlyClaimsToMakeDirectories(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	p := relay.NewTeller(t, "127.0.0.1", f.Address)
	h := f.hostBy(t, p.Address())
	p.Answers("MKD locks/lock.", `257 "/lock." was made`)
	h.run(t, "echo ran").Refused(t, 69, "does not list locks/lock.")
	p.Set(func() { p.Answer = nil })
	h.run(t, "echo ran").Ran(t) // nothing was left
}

// MKD is the test-and-set. Two newcomers have found the atom free, and the server reports success
// to both: the second finds the first one's record, and gives up.
func TestAnAtomHasOneOwnerIfMKDSucceedsTwice(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	p := relay.NewTeller(t, "127.0.0.1", f.Address)
	ctx := limited(t)
	var owner *waiter
	p.Set(func() {
		p.Answer = func(command string) string {
			if command != "MKD locks/lock.p.h.o.x.1" {
				return ""
			}
			owner = enter(t, openFTP(t, f.Address), false, false, lasts)
			return `257 "/lock.p.h.o.x.1" was made`
		}
	})
	_, seen, err := openFTP(t, p.Address()).Enter(ctx, "p.h.o.x", aRecord(t, false), true)
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "answers MKD of ") {
		t.Errorf("the second: %+v, %v", seen, err)
	}
	if owner == nil {
		t.Fatal("there is no first")
	}
	must.Do(t, owner.Renew(ctx))
	if left := globbed(t, f.Root+"/lock.p.h.o.x.1/*"); len(left) != 2 {
		t.Errorf("besides the owner's record and its beat: %v", left)
	}
	if seen, err := openFTP(t, f.Address).Look(ctx, "p.h.o.x", false); err != nil || !seen.Held || seen.Bare {
		t.Errorf("%+v, %v", seen, err)
	}
}
