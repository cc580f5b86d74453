package network

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/lease"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// verb runs a verb of the helper on the host.
func (h *host) verb(t testing.TB, words ...string) helper.Result {
	t.Helper()
	return helper.Command{Args: slices.Concat(h.inside, []string{h.bin}, words), Env: h.env, Limit: 90 * time.Second}.Run(t)
}

// script is a shell script that has sourced the library.
func (h *host) script(text string) helper.Command {
	return helper.Command{
		Args: []string{"sh", "-c", `. "$library"; ` + text},
		Env:  append(h.env, "ADLOCK_BIN="+h.bin, "library="+filepath.Join(helper.Root(), "sh/adlock.sh")), Limit: 90 * time.Second,
	}
}

// wants runs a verb, and fails the test unless it succeeds without a message and prints the
// pattern.
func (h *host) wants(t testing.TB, pattern string, words ...string) string {
	t.Helper()
	r := h.verb(t, words...)
	if r.Status != 0 || r.Err != "" || !regexp.MustCompile(pattern).MatchString(r.Out) {
		t.Errorf("%q: %+v, want %q", words, r, pattern)
	}
	return r.Out
}

// onEachStore runs the test with two hosts of an etcd, then with two of an FTP server.
func onEachStore(t *testing.T, test func(t *testing.T, a, b *host)) {
	t.Run("etcd", func(t *testing.T) {
		s := url(startEtcd(t, 1)...)
		test(t, newHost(t, s), newHost(t, s))
	})
	t.Run("ftp", func(t *testing.T) {
		f := startFTP(t, "")
		test(t, f.host(t), f.host(t))
	})
}

func TestStatusListsTheAtomsOfTheStoreWithTheHostThatOwns(t *testing.T) {
	t.Parallel()
	node, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.run(t, "echo ran", "--operand=done").Ran(t)
		owner := a.start(t, "sleep 60", "--slots=2", "--if-elapsed=5m", "--expire-after=1h")
		pid := strconv.Itoa(owner.PID)
		out := b.wants(t, `(?m)^p o x +running \S+ +never +- +`+pid+` on `+node+` +[12] of 2 +5m / 1h$`, "status")
		if !regexp.MustCompile(`(?m)^p o done +idle +\S+ ago on `+node+` +- +- `).MatchString(out) || strings.Count(out, "\n") != 3 {
			t.Errorf("%s", out)
		}
		b.wants(t, `^ATOM.*\np o x .*\n$`, "status", "o x")
		var rows []struct {
			Atom, State, Node, User, Since, Completed string
			Owner                                     int
			Takeable                                  bool
		}
		if err := json.Unmarshal([]byte(b.wants(t, "", "status", "--json")), &rows); err != nil || len(rows) != 2 {
			t.Fatalf("%v: %+v", err, rows)
		}
		if done, held := rows[0], rows[1]; done.Completed == "" || !done.Takeable ||
			held.Owner != owner.PID || held.Node != node || held.User != "" || held.Takeable {
			t.Errorf("%+v", rows)
		}
		if since, err := time.Parse(time.RFC3339, rows[1].Since); err != nil || time.Since(since) > time.Hour {
			t.Errorf("since %s: %v", rows[1].Since, err)
		}
		owner.Signal(t, syscall.SIGTERM)
		owner.Wait(t)
	})
}

// called gives the host its own node name.
func (h *host) called(t testing.TB, node string) {
	t.Helper()
	need.Namespaces(t, "--uts")
	h.inside = []string{"unshare", "--uts", "sh", "-c", "hostname " + node + `; exec "$@"`, "sh"}
}

func TestStatusNamesTheHostOfOwnersAndPastRuns(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.called(t, "dax")
		b.called(t, "ode")
		a.run(t, "echo ran").Ran(t)
		b.wants(t, `(?m)^p o x +idle +\S+ ago on dax `, "status")
		b.run(t, "echo ran").Ran(t)
		a.wants(t, `"completed_on":"ode"`, "status", "--json")

		owner := a.start(t, "sleep 60")
		on := strconv.Itoa(owner.PID) + " on dax"
		b.run(t, "echo ran").Denied(t)
		b.wants(t, `(?m) deny +p o x: pid \d+ on ode, owner `+on+`, busy: `, "log")
		b.verb(t, "clear", "p o x").Refused(t, 77, "(process "+on+")")
		if r := b.run(t, "echo ran", "--expire-after=1ms"); r.Out != "ran\n" {
			t.Errorf("%+v", r)
		}
		b.wants(t, `(?m) takeover +p o x: pid \d+ on ode, owner `+on+`, `, "log")
		b.wants(t, `(?m)^ +ended +`+on+` after \S+ by \d+ on ode on `, "report")
		b.wants(t, `"owner":`+strconv.Itoa(owner.PID)+`,"owner_node":"dax","by":\d+,"by_node":"ode"`, "report", "--json")
		b.wants(t, ` by `+on+`: ended by force by \d+ on ode<`, "timeline", "--svg", "-")
		owner.Wait(t)
		a.wants(t, `(?m) release +p o x: pid `+on+`, `, "log")

		owner = a.start(t, "sleep 60")
		owner.Kill(t)
		helper.Eventually(t, "the lock is cleared", func() bool { return b.verb(t, "clear", "p o x").Status == 0 })
		b.wants(t, `(?m) clear +p o x: owner `+strconv.Itoa(owner.PID)+` on dax$`, "log")
	})
}

// status gives the same answer about an atom as --dry-run with its limits.
func TestStatusOfAStoreAgreesWithTheDryRun(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		owner := a.start(t, "sleep 60", "--expire-after=2s")
		helper.Eventually(t, "it has expired", func() bool { return strings.Contains(b.verb(t, "status").Out, " overdue ") })
		said := b.run(t, "", "--expire-after=2s", "--dry-run").Out
		if !strings.HasPrefix(said, "expired: ") {
			t.Errorf("%q", said)
		}
		b.wants(t, `"takeable":true,"why":"expired: `, "status", "--json")
		owner.Signal(t, syscall.SIGTERM)
		owner.Wait(t)
	})
}

func TestAgeOfAnAtomIsThatOfItsLastLockInTheStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		age := b.script("adlock_age o x")
		for _, want := range []string{"^never\n$", "^[0-9]+\n$"} {
			if r := age.Run(t); r.Status != 0 || !regexp.MustCompile(want).MatchString(r.Out) || r.Err != "" {
				t.Errorf("%+v, want %q", r, want)
			}
			a.run(t, "echo ran").Ran(t)
		}
	})
}

func TestReadersAndWaitersAreListed(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s), newHost(t, s)
	one, other := a.start(t, "sleep 60", "--shared"), b.start(t, "sleep 60", "--shared")
	a.wants(t, `(?m)^p o x +running \S+ +never +- +`+strconv.Itoa(one.PID)+` on \S+ \+1 `, "status")
	writer := a.command("echo ran", "--wait=60s").Start(t)
	helper.Eventually(t, "the writer waits", func() bool {
		return regexp.MustCompile(`(?m)^  waiting for 2 readers: pid ` + strconv.Itoa(writer.PID) + ` on \S+$`).MatchString(b.verb(t, "status").Out)
	})
	for _, reader := range []*helper.Process{one, other} {
		reader.Signal(t, syscall.SIGTERM)
		reader.Wait(t)
	}
	if status := writer.Wait(t); status != 0 {
		t.Errorf("%d %s", status, writer.Output())
	}
}

// A job may begin before its place's record says that it owns the atom.
func TestTheFirstInALineIsListedAsItsOwner(t *testing.T) {
	t.Parallel()
	m := startEtcd(t, 1)
	s, h := open(t, url(m...)), newHost(t, url(m...))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, shared := range []bool{false, true} {
		waits := aRecord(t, shared)
		waits.Taken, waits.Node, waits.Owner = time.Time{}, "dax", process.Identity{PID: 7, Boot: "another"}
		first, seen, err := s.Enter(ctx, waits.Atom.Name(), waits, time.Minute, true)
		if err != nil || seen.Held {
			t.Fatal(seen, err)
		}
		behind := waits
		behind.Token, behind.Shared, behind.Owner.PID = record.NewToken(), false, 8
		second, seen, err := s.Enter(ctx, waits.Atom.Name(), behind, time.Minute, true)
		if err != nil || !seen.Held {
			t.Fatal(seen, err)
		}
		h.wants(t, `(?m)^p o x +running \S+ .* 7 on dax .*\n  waiting for process 7 on dax: pid 8 on dax$`, "status")
		h.verb(t, "clear", "p o x").Refused(t, 77, "its owner lives")
		for _, p := range []lease.Place{first, second} {
			if err := leave(ctx, p, nil); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestStatusOfAStoreThatIsOutOfReachIsOneLine(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"etcd://" + freePort(t) + "/adlock", "ftp://anonymous@" + freePort(t) + "/locks"} {
		h := newHost(t, store)
		for _, verb := range []string{"status", "tune"} {
			h.verb(t, verb).Refused(t, 69, store)
		}
	}
	newHost(t, "http://a/b").verb(t, "status").Refused(t, 64, "http://a/b: is no store")
}

func TestDoctorTriesAStoreAndLeavesNothing(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		for _, h := range []*host{a, b} {
			out := h.verb(t, "doctor").Out
			for _, want := range []string{"ok   store: " + h.store + " answers after ", "ok   lease: one of " + lasting + " was taken", "ok   store clock: "} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in %s", want, out)
				}
			}
		}
		a.wants(t, "^no atoms in ", "status")
		a.run(t, "echo ran").Ran(t)
	})
	h := newHost(t, "etcd://"+freePort(t)+"/adlock")
	if r := h.verb(t, "doctor"); r.Status != 1 || !strings.Contains(r.Out, "fail store: "+h.store+": connection refused; ") {
		t.Errorf("%+v", r)
	}
}

func TestAnEmptyStoreHasNoAtoms(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, _ *host) {
		a.wants(t, `^no atoms in `+regexp.QuoteMeta(a.store)+`\n$`, "status")
		a.wants(t, `^\[\]\n$`, "status", "--json")
		a.env = append(a.env, "ADLOCK_STORE="+a.dir) // the option prevails
		a.wants(t, `^no atoms in `+regexp.QuoteMeta(a.store)+`\n$`, "status", "--store", a.store)
	})
}

// An atom in a store and one of the same name in a lock directory are two, although this host's
// runlog has the events of both.
func TestTheLastRunIsThatOfTheStoreThatIsAskedFor(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		here, there := *a, *a
		here.env = append(slices.Clone(a.env), "ADLOCK_STORE=")
		there.env = append(slices.Clone(a.env), "ADLOCK_STORE="+b.store+"2")
		a.run(t, "echo ran").Ran(t)
		if r := here.run(t, "exit 3"); r.Status != 3 {
			t.Errorf("%+v", r)
		}
		a.wants(t, `"last":{"outcome":"success","status":0,`, "status", "--json")
		here.wants(t, `"last":{"outcome":"failure","status":3,`, "status", "--json")
		if r := there.verb(t, "status", "--json"); strings.Contains(r.Out, `"last"`) {
			t.Errorf("of another store: %+v", r)
		}
		a.wants(t, `,"store":"`+regexp.QuoteMeta(a.store)+`",`, "log", "--json")
	})
}
