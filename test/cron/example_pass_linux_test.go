package cron

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/must"
)

const atoms = 32

// wantOnce expects that each atom of the example was acquired once.
func (p *place) wantOnce() {
	p.Helper()
	taken, distinct := p.events(runlog.Acquire), map[string]bool{}
	for _, e := range taken {
		distinct[e.Operator+" "+e.Operand] = true
	}
	if len(taken) != atoms || len(distinct) != atoms {
		p.Errorf("%d atoms were taken %d times", len(distinct), len(taken))
	}
}

// The pass maintains a small machine that the test has made.
func TestAPassRunsItsAtomsAndTheNextFindsThemTooSoon(t *testing.T) {
	p := newPlace(t)
	p.write("root/etc/motd", "Welcome.\n", 0o644)
	must.Do(t, os.MkdirAll(p.path("root/usr"), 0o755))
	p.command("pgrep", ":") // the example finds cron running
	line := []string{p.example("site-pass", "bin/site-pass"), p.path("root")}
	p.silent(line...)
	p.wantOnce()
	if info, err := os.Stat(p.path("root/home/shared")); err != nil || info.Mode().Perm() != 0o775 || info.Mode()&os.ModeSetgid == 0 {
		t.Errorf("%v (%v)", info, err)
	}
	if got := p.read("root/usr/local/etc/motd"); got != "Welcome.\nReport trouble to root.\n" {
		t.Errorf("the copy says %q", got)
	}
	if to, err := os.Readlink(p.path("root/var/adm")); err != nil || to != "../var/log" {
		t.Errorf("%q (%v)", to, err)
	}
	must.Do(t, os.RemoveAll(p.path("root/srv/www")))
	p.silent(line...)
	p.wantOnce()
	if p.has("root/srv/www") {
		t.Error("an atom ran again within its 15 minutes")
	}
	if left, _ := filepath.Glob(p.path("locks/lock.*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
