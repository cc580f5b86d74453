package network

import (
	"context"
	"testing"

	"adlock/lib/lease"
	"adlock/lib/limit"
	"adlock/test/support/helper"
)

func TestClearRefusesWhileTheOwnerRenewsItsLease(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.run(t, "echo ran", "--operand=idle").Ran(t)
		owner := a.start(t, "sleep 60", "--slots=1")
		for _, name := range []string{"p.shared.o.x", "p o x", "p.shared.slot-1"} {
			b.verb(t, "clear", name).Refused(t, 77, "its lease is renewed")
		}
		b.verb(t, "clear", "p o idle").Refused(t, 64, `clear: "p o idle" is not locked: nothing to clear`)
		b.verb(t, "clear", "p.shared.o.idle").Refused(t, 64, "is not locked: nothing to clear")
		b.verb(t, "clear", "nobody").Refused(t, 64, "nobody")
		b.verb(t, "clear", "--last", "--older=1d").Refused(t, 64, "--last is for lock directories")
		a.env = append(a.env, "ADLOCK_STORE="+a.dir) // the option prevails
		a.verb(t, "clear", "--store", b.store, "p o x").Refused(t, 77, "its lease is renewed")
		b.run(t, "echo ran").Denied(t)
		stop(t, owner)
	})
}

func TestClearRemovesTheLockOfADeadOwner(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.env = append(a.env, "ADLOCK_LEASE=1h")
		owner := a.start(t, "sleep 60", "--slots=1")
		owner.Kill(t) // its watchdog ends the job
		helper.Eventually(t, "it is cleared", func() bool { return b.verb(t, "clear", "p.shared.o.x").Status == 0 })
		helper.Contains(t, b.runlog(), "event=clear program=p ")
		b.run(t, "echo ran", "--slots=1", "--if-elapsed=1h").Ran(t) // nothing had completed
	})
}

// abandoned takes a place at p.h.o.x that is never renewed, with an owner on another machine.
func abandoned(t testing.TB, s lease.Store) lease.Place {
	t.Helper()
	own := aRecord(t, false)
	own.Owner.Machine, own.Owner.Boot, own.Node, own.Lease = "another", "another", "elsewhere", limit.ShortestLease
	place, _, err := s.Enter(context.Background(), own.Atom.Name(), own, false)
	if err != nil || place == nil {
		t.Fatal(place, err)
	}
	return place
}

func TestClearRemovesTheLockOfOneDeadReader(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	a.env = append(a.env, "ADLOCK_LEASE=1h")
	dead, living := a.start(t, "sleep 60", "--shared"), b.start(t, "sleep 60", "--shared")
	b.verb(t, "clear", "read.p.shared.o.x."+itoa(living.PID)).Refused(t, 77, "process "+itoa(living.PID)+" on ")
	dead.Kill(t)
	helper.Eventually(t, "it is cleared", func() bool {
		return b.verb(t, "clear", "read.p.shared.o.x."+itoa(dead.PID)).Status == 0
	})
	b.wants(t, ` `+itoa(living.PID)+` on \S+ `, "status")
	stop(t, living)
	a.run(t, "echo ran").Ran(t)
}
