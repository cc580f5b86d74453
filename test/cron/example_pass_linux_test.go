package cron

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

const atoms = 32

// passes makes a place with the example, and a small machine for it to maintain.
func passes(t *testing.T, changes ...string) (p *place, line []string) {
	t.Helper()
	p = newPlace(t)
	p.write("root/etc/motd", "Welcome.\n", 0o644)
	must.Do(t, os.MkdirAll(p.path("root/usr"), 0o755))
	p.command("pgrep", ":") // the example finds cron running
	return p, []string{p.example("site-pass", "bin/site-pass", changes...), p.path("root")}
}

// taken counts how often each atom was taken.
func (p *place) taken() map[string]int {
	p.Helper()
	times := map[string]int{}
	for _, e := range p.events(runlog.Acquire) {
		times[e.Operator+" "+e.Operand]++
	}
	return times
}

// wantOnce expects n atoms, each taken once.
func (p *place) wantOnce(n int) {
	p.Helper()
	times := p.taken()
	for atom, number := range times {
		if number != 1 {
			p.Errorf("%s was taken %d times", atom, number)
		}
	}
	if len(times) != n {
		p.Errorf("%d atoms, want %d: %v", len(times), n, times)
	}
}

func TestAPassDoesItsAtomsAndTheNextFindsThemTooSoon(t *testing.T) {
	p, line := passes(t)
	p.silent(line...)
	p.wantOnce(atoms)
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
	p.wantOnce(atoms)
	if p.has("root/srv/www") {
		t.Error("an atom ran again within its 15 minutes")
	}
	if left, _ := filepath.Glob(p.path("locks/lock.*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// The interval has passed by the machine's clock, but not by the pass's.
func TestWhatWasDoneSinceAPassBeganIsNotDoneAgain(t *testing.T) {
	p, line := passes(t)
	p.command("find", await+`case $* in */var/tmp*) mkdir {dir}/held 2>/dev/null && await go ;; esac; :`)
	first := p.line(append(line, "ADLOCK_IF_ELAPSED=1s")...).Start(t)
	p.there("held")
	p.silent(line...)
	helper.Eventually(t, "the interval has passed since", func() bool {
		last, _ := filepath.Glob(p.path("locks/last.*.processes.cron"))
		info, err := os.Stat(last[0])
		return err == nil && time.Since(info.ModTime()) > 2*time.Second
	})
	p.write("go", "", 0o644)
	p.ends(first, 0)
	p.wantOnce(atoms)
}

func TestAnAtomThatHangsHoldsUpItselfAlone(t *testing.T) {
	p, line := passes(t)
	p.command("find", `case $* in *core*) [ -e {dir}/mended ] || { : >{dir}/hangs; sleep 1000; } ;; esac`)
	hung := p.line(line...).Start(t)
	p.there("hangs")
	hangs := must.Get(os.Stat(p.path("hangs")))(t)
	p.silent(line...)
	p.wantOnce(atoms)
	p.write("mended", "", 0o644)
	helper.Eventually(t, "it has hung for longer than a second, by a clock of whole seconds", func() bool {
		return time.Since(hangs.ModTime()) > 2*time.Second
	})
	r := p.line(append(line, "ADLOCK_EXPIRE_AFTER=1s")...).Run(t)
	if r.Status != 0 || !strings.Contains(r.Err, "tidy /home/shared: ended process ") || strings.Count(r.Err, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	helper.Eventually(t, "the pass that hung is gone", hung.Ended)
	if n := p.taken()["tidy /home/shared"]; n != 2 {
		t.Errorf("the atom that hung was taken %d times", n)
	}
}
