//go:build soak

package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/relay"
)

func TestAStepOfTheFTPServersClockLetsNoNewcomerIn(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			f := startFTP(t, "")
			p := relay.NewTeller(t, "127.0.0.1", f.Address)
			a, b := f.hostBy(t, p.Address()).brief(), f.hostBy(t, p.Address()).brief()
			file := t.TempDir() + "/beats"
			owner := a.start(t, "n=0; while [ $n -lt 400 ]; do n=$((n + 1)); read -r now _ </proc/uptime; echo $now >>"+file+"; sleep 0.02; done")
			waiter := b.command(begins, "--wait=60s").Start(t)
			time.Sleep(time.Second) // by then the owner knows the server's clock
			p.SetClock(step)
			next := b.run(t, begins)
			for ; next.Status == 75 && !owner.Ended(); next = b.run(t, begins) {
			}
			endsWith(t, owner, 0, "")
			if next.Status == 0 { // the job had ended, but not its runner
				margin(t, file, next.Out)
			} else if next.Status != 75 {
				t.Errorf("beside a living owner: %+v", next)
			}
			waiter.Is(t, 0, "…")
			t.Logf("the clock stepped by %v: margin %v", step, margin(t, file, waiter.Output()))
			hourAhead := regexp.MustCompile("the times in the store are (59m|1h)")
			if said := b.verb(t, "doctor").Out; step > 0 && !hourAhead.MatchString(said) {
				t.Errorf("the clock has not stepped: %s", said)
			}
		})
	}
}

func TestASilentOwnerOnFTPIsReplacedAfterItsLease(t *testing.T) {
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} {
		for _, wait := range []string{"--wait=0", "--wait=60s"} {
			t.Run(fmt.Sprint("stepped by ", step, ", ", wait), func(t *testing.T) {
				t.Parallel()
				f := startFTP(t, "")
				p := relay.NewTeller(t, "127.0.0.1", f.Address)
				a, b := f.hostBy(t, p.Address()).brief(), f.hostBy(t, p.Address()).brief()
				file := t.TempDir() + "/beats"
				owner := a.beats(t, file)
				f.moveAbroad(t)
				owner.Signal(t, syscall.SIGSTOP) // its watchdog ends the job
				stopped := time.Now()
				p.SetClock(step)
				next := b.run(t, begins, wait)
				for ; next.Status == 75; next = b.run(t, begins, wait) {
				}
				if next.Status != 0 {
					t.Fatalf("%+v", next)
				}
				took := time.Since(stopped)
				t.Logf("replaced %v after it was stopped, margin %v", took.Round(100*time.Millisecond), margin(t, file, next.Out))
				if took > time.Minute { // by the clock that stepped it would be an hour
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

// moveAbroad changes the records so that the owners seem to be on another machine.
func (f *ftpd) moveAbroad(t testing.TB) {
	t.Helper()
	for _, file := range globbed(t, f.Root+"/lock.*/owner") {
		helper.Rewrite(t, file, "boot", "elsewhere")
		helper.Rewrite(t, file, "machine", "elsewhere")
	}
}

func TestAnFTPLockThatCannotBeReleasedEndsWithItsLease(t *testing.T) {
	f := startFTP(t, "")
	p := relay.NewTeller(t, "127.0.0.1", f.Address)
	h := f.hostBy(t, p.Address()).brief()
	p.Set(func() {
		p.Answer = func(command string) string {
			if strings.HasSuffix(command, "/released") || strings.HasPrefix(command, "RNFR") && strings.HasSuffix(command, "/owner") {
				return "500 Not here."
			}
			return ""
		}
	})
	began := time.Now()
	r := h.run(t, "exit 3")
	if took := time.Since(began); r.Status != 3 || took > helper.Patience {
		t.Errorf("%v: %+v", took, r)
	}
	if strings.Count(r.Err, "\n") != 1 || !strings.HasPrefix(r.Err, "adlock: o x: not released until the lease ran out") || !strings.Contains(r.Err, "ftp://") {
		t.Errorf("said %q", r.Err)
	}
	p.Set(func() { p.Answer = nil })
	h.run(t, "echo ran", "--wait=30s").Ran(t)
}

func TestAnFTPStampThatCannotBeWrittenIsReported(t *testing.T) {
	f := startFTP(t, "")
	h := f.host(t).brief()
	file := h.notes(t)
	owner := h.start(t, "chmod 555 '"+f.Root+"'; exit 3")
	check.Equal(t, "the status", owner.Wait(t), 3)
	if said := owner.Output(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "last.p.shared.o.x") {
		t.Errorf("said %q", said)
	}
	lines := told(t, file, 2)
	if !strings.HasPrefix(lines[0], "fail ") || !strings.HasPrefix(lines[1], "unwritten ") {
		t.Errorf("told of %q", lines)
	}
	helper.Contains(t, h.runlog(), "last.p.shared.o.x")
	must.Do(t, os.Chmod(f.Root, 0o755))
	h.run(t, "echo ran").Ran(t) // the lock was released all the same
}

func TestAnAtomIsFree20sAfterAStalledFTPNewcomerEnds(t *testing.T) {
	stall := func(what string, n int, trouble func(p *relay.Teller)) {
		t.Run(fmt.Sprint(what, " ", n), func(t *testing.T) {
			t.Parallel()
			f := startFTP(t, "")
			p := relay.NewTeller(t, "127.0.0.1", f.Address)
			f.host(t).brief().run(t, "echo ran").Ran(t)
			trouble(p)
			began := time.Now()
			r := f.hostBy(t, p.Address()).brief().run(t, "true")
			if took := time.Since(began); r.Status != 0 && r.Status != 69 || took > 40*time.Second {
				t.Errorf("%v: %+v", took, r)
			}
			f.host(t).brief().run(t, "echo ran", "--wait=20s").Ran(t)
		})
	}
	for n := 0; n < 45; n += 4 {
		stall("command", n, func(p *relay.Teller) { p.Silent = n })
	}
	for n := range 12 {
		stall("data connection", n, func(p *relay.Teller) { p.Stalled = n })
	}
}

// Taking and keeping the atom takes some 25 commands, its release a dozen.
func TestASlowFTPServerIsWaitedForWithinTheLease(t *testing.T) {
	f := startFTP(t, "")
	p := relay.NewTeller(t, "127.0.0.1", f.Address)
	h := f.hostBy(t, p.Address())
	h.taught(t)
	for slow, seconds := range map[time.Duration]time.Duration{200 * time.Millisecond: 15, 500 * time.Millisecond: 30} {
		p.Set(func() { p.Delay = slow })
		h.leased(seconds*time.Second).run(t, "sleep 6; echo ran").Ran(t)
	}
	p.Set(func() { p.Delay = 200 * time.Millisecond })
	h.leased(15*time.Second).wants(t, "^$", "tune", "--reset", "p o x")
	p.Set(func() { p.Delay = 0 })
	h.explains(t, "ExpireAfter never: 0 successful runs", "--expire-after=auto")
}

func TestAnFTPServerThatAllowsOneConnectionIsEnough(t *testing.T) {
	h := startFTP(t, "").withLines(t, "max_per_ip=1").host(t).brief()
	for range 10 {
		h.run(t, "echo ran").Ran(t)
	}
	h.run(t, "sleep 5; echo ran").Is(t, 0, "ran\n", "…")
}

func TestAWaiterOutlastsAnFTPServersConnectionLimit(t *testing.T) {
	f := startFTP(t, "").withLines(t, "max_clients=1")
	a, b := f.host(t).brief(), f.host(t).brief()
	owner := a.start(t, "sleep 60")
	b.run(t, "echo ran").Refused(t, 69, "too many")
	waiter := b.command("echo ran", "--wait=60s").Start(t)
	time.Sleep(3 * time.Second) // it has asked by now
	stop(t, owner)
	endsWith(t, waiter, 0, "ran\n")
}

func TestAFailedFTPListingOrReadDoesNotMeanAFreeAtom(t *testing.T) {
	f := startFTP(t, "")
	p, q := relay.NewTeller(t, "127.0.0.1", f.Address), relay.NewTeller(t, "127.0.0.1", f.Address)
	end := t.TempDir() + "/end"
	owner := f.hostBy(t, p.Address()).brief().start(t, until(end)+"echo done")
	p.Answers("NLST", "550 Failed.")
	helper.Eventually(t, "a renewal was refused", func() bool { return p.Said("NLST") > 6 })
	p.Set(func() { p.Answer = nil })
	h := f.hostBy(t, q.Address()).brief()
	for _, what := range []string{"NLST locks", "RETR locks/lock.p.shared.o.x.1/owner", "MDTM locks/lock.p.shared.o.x.1/owner"} {
		q.Answers(what, "550 Failed to open file.")
		if r := h.run(t, "echo ran"); r.Out != "" || r.Status != 69 && r.Status != 77 {
			t.Errorf("%s: %+v", what, r)
		}
	}
	touch(t, end)
	endsWith(t, owner, 0, "done\n")
	q.Answers("RETR locks/last.", "550 Failed to open file.")
	h.run(t, "echo ran", "--if-elapsed=1h").Is(t, 77, "", "…")
	if place, _, err := openFTP(t, q.Address()).Enter(limited(t), "p.shared.o.x", aRecord(t, false), false); place != nil || err == nil {
		t.Errorf("%v, %v", place, err)
	}
	f.host(t).run(t, "echo ran").Ran(t) // that newcomer has left
}

// A renewal has no connection of its own: an FTP server may allow only one. Any command that stalls is given up after
// an eighth of the lease, and a new connection is made. So two heartbeats are at most half a lease and a login apart:
// 1/3 until the next is due, 1/8 for the stalled command, 1/30 until the next try. At 2/3 the job would be ended.
func TestAStalledFTPConnectionEndsNoJob(t *testing.T) {
	const lease, login = limit.ShortestLease, 500 * time.Millisecond
	stalls := func(name string, stall func(p *relay.Teller)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFTP(t, "")
			p := relay.NewTeller(t, "127.0.0.1", f.Address)
			owner := f.hostBy(t, p.Address()).brief().start(t, "sleep 7; echo done")
			p.Set(func() { stall(p) })
			beat, at, longest := "", time.Now(), time.Duration(0)
			for !owner.Ended() && !exists(f.Root+"/lock.p.shared.o.x.1/released") {
				if now := newest(f.Root + "/lock.p.shared.o.x.1/beat.*"); now != beat && now != "" {
					longest, beat, at = max(longest, time.Since(at)), now, time.Now()
				}
				time.Sleep(10 * time.Millisecond)
			}
			if longest < lease/3-login || longest > lease*2/3 { // a busy machine adds to the half
				t.Errorf("up to %v between heartbeats, and the lease is %v", longest, lease)
			}
			endsWith(t, owner, 0, "done\n")
			h := f.host(t).brief()
			h.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
			h.run(t, "echo ran").Ran(t)
		})
	}
	for n := range 10 {
		stalls(fmt.Sprint("command ", n), func(p *relay.Teller) { p.Silent = n })
	}
	for n := range 5 {
		stalls(fmt.Sprint("data connection ", n), func(p *relay.Teller) { p.Stalled = n })
	}
}

// newest returns the newest heartbeat; there may be two while one is being replaced.
func newest(pattern string) (last string) {
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		if len(file) > len(last) || len(file) == len(last) && file > last {
			last = file
		}
	}
	return last
}

func TestAJobOutlivesARestartOfTheFTPServer(t *testing.T) {
	f := startFTP(t, "")
	h := f.host(t).brief()
	owner := h.start(t, "sleep 6; echo done")
	f.Stop(t)
	f.Start(t)
	endsWith(t, owner, 0, "done\n")
	h.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
}

func TestAFullFTPDiskStartsNoJobAndEndsNone(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	root := dir + "/locks"
	must.Do(t, os.Mkdir(root, 0o755))
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=64k"); err != nil {
		need.Skip(t, "cannot mount: "+err.Error())
	}
	t.Cleanup(func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) })
	f := startFTP(t, root)
	a, b := f.host(t).brief(), f.host(t).brief()
	owner := a.start(t, "sleep 8; echo done", "--operand=y")
	kept := &lease.Last{Kept: true}
	kept.Completed = time.Unix(9, 0).UTC()
	must.Do(t, enter(t, openFTP(t, f.Address), false, false, lasts).Leave(limited(t), kept))
	noter := enter(t, openFTP(t, f.Address), false, false, lasts)
	if err := os.WriteFile(root+"/filler", make([]byte, 1<<16), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	b.run(t, "echo ran").Refused(t, 74, "ftp://")
	if left, _ := filepath.Glob(root + "/lock.p.shared.o.x.*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for what, refused := range map[string]error{"a note": noter.Note(limited(t), noter.record), "a kept stamp": noter.Leave(limited(t), kept)} {
		seen, err := openFTP(t, f.Address).Look(limited(t), "p.h.o.x", false)
		if err != nil || fault.KindOf(refused) != fault.IO || seen.Owner.Token != noter.record.Token || seen.Last.Completed != kept.Completed {
			t.Errorf("%s: %v; then %+v, %v", what, refused, seen, err)
		}
	}
	endsWith(t, owner, 0, "done\n")
	a.run(t, "echo ran", "--operand=y", "--if-elapsed=1h").Denied(t)
}

// A lock on FTP stays after its lease, and a newcomer would have to watch it first.
func TestClearRemovesAnFTPLockWhoseLeaseHasRunOut(t *testing.T) {
	f := startFTP(t, "")
	h := f.host(t).brief()
	place := abandoned(t, openFTP(t, f.Address))
	h.verb(t, "clear", "p.h.o.x").Refused(t, 77, "its owner lives (process ")
	helper.Eventually(t, "status says so", func() bool {
		out := h.verb(t, "status").Out
		return strings.Contains(out, " unknown ") && strings.Contains(out, "it has given no sign of life for its whole lease") &&
			strings.Contains(out, "; if you know that it is dead: adlock clear p.h.o.x\n")
	})
	h.wants(t, "^$", "clear", "p.h.o.x")
	h.run(t, "echo ran", "--host=h").Ran(t)
	check.Equal(t, "the earlier owner", place.Renew(context.Background()), error(lease.ErrGone))
}

func TestClearSucceedsOnFTPIfOnlyItsAnswerIsLost(t *testing.T) {
	f := startFTP(t, "")
	abandoned(t, openFTP(t, f.Address))
	s, r := f.unanswered(t, "/released")
	var found lease.Snapshot
	helper.Eventually(t, "its lease is over", func() bool {
		var err error
		found, err = s.Look(limited(t), "p.h.o.x", false)
		return err == nil && found.Silent
	})
	carriedOut(t, r, func() bool { return exists(f.Root + "/lock.p.h.o.x.1/released") }, func() error {
		return (&lease.Locker{Store: s}).Clear("p.h.o.x", &locker.View{Record: found.Owner.Record})
	})
}

// If an answer comes after its command was given up, it must not be taken for the answer to the
// next command: each later command would get the answer to the one before it.
func TestALateFTPAnswerIsDropped(t *testing.T) {
	f := startFTP(t, "")
	for what, answer := range map[string]string{"the port for data": "229 ", "the end of a list": "226 Directory"} {
		t.Run(what, func(t *testing.T) {
			r := relay.New(t, f.Address)
			late := make(chan bool, 1)
			answers := func(line []byte) []byte {
				if bytes.HasPrefix(line, []byte(answer)) && len(late) > 0 {
					<-late
					time.Sleep(time.Second) // an eighth of the lease is less
				}
				return line
			}
			r.Edit = func(net.Conn) [2]func([]byte) []byte { return [2]func([]byte) []byte{relay.ToClient: answers} }
			s := openFTP(t, r.Address())
			ctx := limited(t)
			record := aRecord(t, false)
			record.Lease = limit.ShortestLease
			place, seen, err := s.Enter(ctx, atom.Name("p.h.o.x"+answer[:3]), record, true)
			if err != nil || seen.Held {
				t.Fatal(seen, err)
			}
			late <- true
			if _, err := place.Look(ctx); fault.KindOf(err) != fault.Unavailable || len(late) > 0 {
				t.Fatalf("the answer was not late: %v", err)
			} else if !strings.HasSuffix(err.Error(), ": "+lease.NoAnswer) {
				t.Error(err)
			}
			for range 3 {
				must.Do(t, place.Renew(ctx))
			}
		})
	}
}

// A server may refuse a record because a newcomer has passed and removed the lock. If it then falls silent,
// the refusal says nothing about the user's permissions.
func TestAnFTPServerThatFallsSilentIsReportedAsSilent(t *testing.T) {
	f := startFTP(t, "")
	p := relay.NewTeller(t, "127.0.0.1", f.Address)
	p.Answer = func(command string) string {
		if !strings.HasPrefix(command, "STOR locks/lock.") {
			return ""
		}
		p.Silent = 0 // from the next command on
		return "553 Could not create file."
	}
	f.hostBy(t, p.Address()).brief().run(t, "echo ran").Refused(t, 69, lease.NoAnswer)
}

func (f *ftpd) removed(t testing.TB, directory string) {
	t.Helper()
	if !exists(filepath.Join(f.Root, directory)) {
		t.Fatal(directory + " is not there")
	}
	must.Do(t, os.RemoveAll(filepath.Join(f.Root, directory)))
}

// A person removes a lock on the FTP server, and a newcomer makes a generation of the same number. Neither
// owner mistakes the other's generation for its own, or releases it.
func TestAnFTPOwnerGivesUpAGenerationMadeByAnother(t *testing.T) {
	for how, waits := range map[string]bool{"and ends its job": false, "and does not give it back": true} {
		t.Run(how, func(t *testing.T) {
			first, second, script := t.TempDir()+"/first", t.TempDir()+"/second", "sleep 60"
			if waits {
				script = until(first)
			}
			f := startFTP(t, "")
			a, b := f.host(t).brief(), f.host(t).brief()
			owner := a.start(t, script)
			f.removed(t, "/lock.p.shared.o.x.1")
			next := b.start(t, until(second)+"echo done")
			touch(t, first)
			owner.Wait(t)
			helper.Contains(t, owner.Output(), "lost: the lease is gone")
			b.run(t, "echo ran").Denied(t)
			touch(t, second)
			endsWith(t, next, 0, "done\n")
		})
	}
}

// A newcomer stands still after it has acquired the atom. Meanwhile another process comes to own the atom;
// the newcomer must not replace that owner's record.
func TestAnFTPOwnerThatLostItsGenerationWritesNoRecord(t *testing.T) {
	for how, record := range map[string]string{
		"removed, and made again": "/lock.p.h.o.x.1/owner", "passed": "/lock.p.h.o.x.2/owner",
		"removed, made again, and given back": "/lock.p.h.o.x.1/released",
	} {
		t.Run(how, func(t *testing.T) {
			next := filepath.Dir(record)
			f := startFTP(t, "")
			late := enter(t, openFTP(t, f.Address), false, false, lasts)
			f.removed(t, "/lock.p.h.o.x.1")
			other := enter(t, openFTP(t, f.Address), false, false, lasts)
			if !exists(f.Root + next) {
				must.Do(t, os.Rename(f.Root+"/lock.p.h.o.x.1", f.Root+next))
			}
			if filepath.Base(record) == "released" {
				must.Do(t, other.Leave(limited(t), nil))
			}
			if err := late.Note(limited(t), late.record); !errors.Is(err, lease.ErrGone) {
				t.Error(err)
			}
			text := must.Get(os.ReadFile(f.Root + record))(t)
			if found, err := lease.ParseRecord("", text); err != nil || found.Token != other.record.Token {
				t.Errorf("the record is of %s, and not of %s: %v", found.Token, other.record.Token, err)
			}
		})
	}
}

func TestAnFTPOwnerStoresItsRemovedRecordAgain(t *testing.T) {
	f := startFTP(t, "")
	h := f.host(t).brief()
	record := f.Root + "/lock.p.shared.o.x.1/owner"
	owner := h.start(t, "sleep 7; echo done")
	must.Do(t, os.Remove(record))
	helper.Eventually(t, "it is there again, with its age", func() bool {
		text, err := os.ReadFile(record)
		return err == nil && strings.Contains(string(text), "\nheld=")
	})
	h.run(t, "echo ran").Denied(t)
	endsWith(t, owner, 0, "done\n")
	h.run(t, "echo ran").Ran(t)
}

// A person removes the generation of an owner that is cut off. A newcomer that has seen it waits for the
// owner's lease (not before the second heartbeat: the owner may have withdrawn), and then makes the next
// generation: so the two owners have different fencing tokens.
func TestAnFTPWaiterWaitsOutTheLeaseOfARemovedOwner(t *testing.T) {
	const length = 3 * time.Second
	for _, renewed := range []bool{true, false} {
		f, ctx := startFTP(t, ""), limited(t)
		owner := enter(t, openFTP(t, f.Address), false, false, length)
		if renewed {
			must.Do(t, owner.Renew(ctx))
		}
		waiter := enter(t, openFTP(t, f.Address), false, true, lasts)
		f.removed(t, "/lock.p.h.o.x.1")
		began := process.Boottime()
		helper.Eventually(t, "it has the atom", func() bool {
			seen := must.Get(waiter.Look(ctx))(t)
			return !seen.Held
		})
		if waited := process.Boottime() - began; renewed && waited < length || waiter.Fence() != 2 {
			t.Errorf("renewed %v: it waited for %v, and its fence is %d", renewed, waited, waiter.Fence())
		}
		check.Equal(t, "the owner", owner.Renew(ctx), error(lease.ErrGone))
	}
}
