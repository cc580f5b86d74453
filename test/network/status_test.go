package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/terminal"
)

func TestStatusListsTheStoresAtomsWithTheirOwners(t *testing.T) {
	t.Parallel()
	node := must.Get(os.Hostname())(t)
	onEachStore(t, func(t *testing.T, a, b *host) {
		none := `^no atoms in ` + regexp.QuoteMeta(a.store) + `\n$`
		a.wants(t, none, "status")
		a.wants(t, `^\[\]\n$`, "status", "--json")
		a.with("ADLOCK_STORE="+a.dir).wants(t, none, "status", "--store", a.store) // the option prevails
		a.run(t, "echo ran", "--operand=done").Ran(t)
		owner := a.start(t, "sleep 60", "--slots=2", "--if-elapsed=5m", "--expire-after=1h")
		pid := itoa(owner.PID)
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
		stop(t, owner)
	})
}

// called gives the host its own node name.
func (h *host) called(t testing.TB, node string) {
	t.Helper()
	need.Namespaces(t, "--uts")
	h.inside = []string{"unshare", "--uts", "sh", "-c", "hostname " + node + `; exec "$@"`, "sh"}
}

func TestReportsNameTheHostsOfOwnersAndPastRuns(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.called(t, "dax")
		b.called(t, "ode")
		a.run(t, "echo ran").Ran(t)
		b.wants(t, `(?m)^p o x +idle +\S+ ago on dax `, "status")
		b.run(t, "echo ran").Ran(t)
		a.wants(t, `"completed_on":"ode"`, "status", "--json")

		owner := a.start(t, "sleep 60")
		on := itoa(owner.PID) + " on dax"
		b.run(t, "echo ran").Denied(t)
		b.wants(t, `(?m) deny +p o x: pid \d+ on ode, owner `+on+`, busy: `, "log")
		b.verb(t, "clear", "p o x").Refused(t, 77, "(process "+on+")")
		if r := b.run(t, "echo ran", "--expire-after=1ms"); r.Out != "ran\n" {
			t.Errorf("%+v", r)
		}
		b.wants(t, `(?m) takeover +p o x: pid \d+ on ode, owner `+on+`, `, "log")
		b.wants(t, `(?m)^ +ended +`+on+` after \S+ by \d+ on ode on `, "report")
		b.wants(t, `"owner":`+itoa(owner.PID)+`,"owner_node":"dax","by":\d+,"by_node":"ode"`, "report", "--json")
		b.wants(t, ` by `+on+`: ended by force by \d+ on ode<`, "timeline", "--svg", "-")
		owner.Wait(t)
		a.wants(t, `(?m) release +p o x: pid `+on+`, `, "log")

		owner = a.start(t, "sleep 60")
		owner.Kill(t)
		helper.Eventually(t, "the lock is cleared", func() bool { return b.verb(t, "clear", "p o x").Status == 0 })
		b.wants(t, `(?m) clear +p o x: pid \d+ on \S+, owner `+itoa(owner.PID)+` on dax$`, "log")
	})
}

func TestAdlockAgeReadsTheLastLockInTheStore(t *testing.T) {
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

func TestReadersShareAnAtomAndAWriterWaitsForThem(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	one, other := a.start(t, "sleep 60", "--shared"), b.start(t, "sleep 60", "--shared")
	a.wants(t, `(?m)^p o x +running \S+ +never +- +`+itoa(one.PID)+` on \S+ \+1 `, "status")
	b.run(t, "echo ran").Denied(t)
	writer := a.command("echo ran", "--wait=60s").Start(t)
	helper.Eventually(t, "the writer waits", func() bool {
		return regexp.MustCompile(`(?m)^  waiting for 2 readers: pid ` + itoa(writer.PID) + ` on \S+$`).MatchString(b.verb(t, "status").Out)
	})
	stop(t, one, other)
	endsWith(t, writer, 0, "ran\n")
}

// A job may begin before its place's record says that it owns the atom.
func TestTheHeadOfTheQueueIsListedAsTheOwner(t *testing.T) {
	t.Parallel()
	m := startEtcd(t, 1)
	s, h, ctx := open(t, url(m...)), newHost(t, url(m...)), limited(t)
	for _, shared := range []bool{false, true} {
		waits := aRecord(t, shared)
		waits.Taken, waits.Node, waits.Owner = time.Time{}, "dax", process.Identity{PID: 7, Boot: "another"}
		first, _, err := s.Enter(ctx, waits.Atom.Name(), waits, true)
		must.Do(t, err)
		behind := waits
		behind.Token, behind.Shared, behind.Owner.PID = record.NewToken(), false, 8
		second, _, err := s.Enter(ctx, waits.Atom.Name(), behind, true)
		must.Do(t, err)
		h.wants(t, `(?m)^p o x +running \S+ .* 7 on dax .*\n  waiting for process 7 on dax: pid 8 on dax$`, "status")
		h.verb(t, "clear", "p o x").Refused(t, 77, "its owner lives")
		must.Do(t, errors.Join(leave(ctx, first, nil), leave(ctx, second, nil)))
	}
}

func TestStatusOfAnUnreachableStoreIsAOneLineError(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"etcd://" + freePort(t) + "/adlock", "ftp://anonymous@" + freePort(t) + "/locks"} {
		h := newHost(t, store)
		for _, verb := range []string{"status", "tune"} {
			h.verb(t, verb).Refused(t, 69, store)
		}
	}
	newHost(t, "http://a/b").verb(t, "status").Refused(t, 64, "http://a/b: is no store")
}

func TestDoctorTriesAStoreWithAnAtomThatStatusHides(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, _ *host) {
		helper.Contains(t, a.verb(t, "doctor").Out, "ok   store: "+a.store+" answers after ", "ok   lease: one of "+lasting+" was taken", "ok   store clock: ")
		a.wants(t, "^no atoms in ", "status")
		a.run(t, "echo ran").Ran(t)
	})
	h := newHost(t, "etcd://"+freePort(t)+"/adlock")
	h.verb(t, "doctor").Is(t, 1, "…"+"fail store: "+h.store+": connection refused; "+"…", "…")
}

// An atom in a store and an atom of the same name in a lock directory are two atoms, although this host's
// runlog has the events of both.
func TestStatusShowsTheLastRunOfItsOwnStoreOnly(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, _ *host) {
		here, there := a.with("ADLOCK_STORE="), a.with("ADLOCK_STORE="+a.store+"2")
		a.run(t, "echo ran").Ran(t)
		here.run(t, "exit 3").Is(t, 3, "…", "…")
		a.wants(t, `"last":{"outcome":"success","status":0,`, "status", "--json")
		here.wants(t, `"last":{"outcome":"failure","status":3,`, "status", "--json")
		if r := there.verb(t, "status", "--json"); strings.Contains(r.Out, `"last"`) {
			t.Errorf("of another store: %+v", r)
		}
		a.wants(t, `,"store":"`+regexp.QuoteMeta(a.store)+`",`, "log", "--json")
	})
}

// A run without an end in the runlog still runs if the store has its lock.
func TestARunWhoseLockIsInTheStoreIsReportedAsRunning(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	a, b := newHost(t, url(nodes...)), newHost(t, url(nodes...))
	b.run(t, "echo ran", "--operand=y").Ran(t)
	owner := a.start(t, "sleep 60")
	a.wants(t, `"operand":"x","runs":1,"outcomes":\{"running":1,`, "report", "--json")
	a.wants(t, `(?m)^p o x +#+$`, "timeline")
	a.wants(t, `(?m)^adlock_running_since_timestamp_seconds\{program="p",host="shared",operator="o",operand="x"\} `, "metrics")
	a.wants(t, `acquire +p o x: `, "log")
	if r := a.verb(t, "log"); strings.Contains(r.Out, "p o y") {
		t.Errorf("another host's runs: %+v", r)
	}
	owner.Kill(t)
	helper.Eventually(t, "the lock is cleared", func() bool { return a.verb(t, "clear", "p o x").Status == 0 })
	a.wants(t, `"operand":"x","runs":1,"outcomes":\{"running":0,`, "report", "--json")
}

func TestLogOnATerminalSaysThatItShowsThisHostOnly(t *testing.T) {
	t.Parallel()
	h := newHost(t, url(startEtcd(t, 1)...))
	h.run(t, "echo ran").Ran(t)
	p := terminal.Start(t, 200, helper.Command{Args: []string{h.bin, "log"}, Env: h.env})
	p.Shows(t, `adlock: etcd://\S+: log tells of the runs of this host alone \(\S+\), as the runlog in \S+ has them`)
}

// contents lists the files, with the times at which they were written.
func (f *ftpd) contents() (all string) {
	_ = filepath.Walk(f.Root, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			all += fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return all
}

// contents lists the keys with their revisions, and the leases.
func (m *node) contents() string {
	keys, _ := etcdctl([]*node{m}, "get", "--from-key", "", "-w", "json").Output()
	_, kvs, _ := strings.Cut(string(keys), `"kvs"`) // without the header, which counts requests
	leases, _ := etcdctl([]*node{m}, "lease", "list").Output()
	return kvs + string(leases)
}

func TestDryRunAndStatusWriteNothingToAStore(t *testing.T) {
	t.Parallel()
	asks := func(t *testing.T, runner, asker *host, held func() string) {
		asker.env = append(asker.env, "ADLOCK_DIR="+t.TempDir()+"/none")
		ask := func(want string) {
			before := held()
			r := asker.run(t, "", "--if-elapsed=1h", "--dry-run")
			if !strings.HasPrefix(r.Out, want) || r.Err != "" {
				t.Errorf("%+v, want %q", r, want)
			}
			for _, words := range [][]string{{"status"}, {"status", "--json"}} {
				asker.verb(t, words...).Is(t, 0, "…", "")
			}
			check.Equal(t, "what is held", held(), before)
			if left, _ := filepath.Glob(asker.dir + "/*"); left != nil {
				t.Errorf("here there is %v", left)
			}
		}
		ask("free: ")
		runner.run(t, "echo ran").Ran(t)
		ask("too soon: completed ")
		runner.env = append(runner.env, "ADLOCK_LEASE=1h") // it is not renewed meanwhile
		owner := runner.start(t, "sleep 60", "--operand=y")
		ask("too soon: completed ")
		owner.Kill(t)
	}
	t.Run("etcd", func(t *testing.T) {
		m := startEtcd(t, 1)[0]
		asks(t, newHost(t, url(m)), newHost(t, url(m)), m.contents)
	})
	t.Run("FTP", func(t *testing.T) {
		f := startFTP(t, "")
		asks(t, f.host(t), f.host(t), f.contents)
	})
}
