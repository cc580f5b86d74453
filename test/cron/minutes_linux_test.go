//go:build soak

package cron

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	lines "adlock/lib/crontab"
	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// unlimited is a crontab for busybox: each line has its own settings. This crond starts no line
// that still runs, so a hung job must end itself; only after a change of the crontab does crond
// start the line again. (Debian's busybox crashes at an @reboot line.)
const unlimited = `SHELL={dir}/shell
MAILTO=admin
* * * * * {dir}/overrun 'a  "b"' $((1 + 1)) | cat
* * * * * : hang ADLOCK_EXPIRE_AFTER=2s ; {dir}/hang; echo next
* * * * * : alone ADLOCK_EXPIRE_AFTER=2s ADLOCK_ENFORCE=1 ; echo begun; exec {dir}/daemon alone
* * * * * echo "failed:  $0 $SHELL"; false || exit 9
* * * * * cd / && run-parts --report {dir}/parts
* * * * * {dir}/own/flock -n {dir}/f {dir}/flocked $SHELL
`

func TestOneLineGuardsAWholeCrontabOfBusybox(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	w.busybox("PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ADLOCK_DIR="+w.path("locks"), "ADLOCK_HOST=dax", "ADLOCK_PAUSE=1s", "ADLOCK_HOOK="+w.path("hook"))
	w.start(unlimited, "")
	overrun, parts := nameOf(w.path("overrun")+` 'a  "b"' $((1 + 1)) | cat`), nameOf("cd / && run-parts --report "+w.path("parts"))

	w.await("the first tick: what knows its limit has ended itself", func() bool {
		return count(w.events("alone"), runlog.Release) == 1 && count(w.events(parts), runlog.Release) == 1 &&
			count(w.events(overrun), runlog.Acquire) == 1 && w.has("stubborn")
	})
	w.replace(unlimited)
	w.await("the second tick: what overruns is denied, what hangs is ended", func() bool {
		return count(w.events(overrun), runlog.Deny) > 0 && count(w.events("hang"), runlog.Release) == 1
	})
	w.write("go", "", 0o600)
	w.wantMail(`(?m)^begun\nadlock: run alone: ended by force: .* ExpireAfter is 2s$`)
	w.wantLocked()
}

// busybox makes busybox's crond the world's cron. Its crontabs may set only SHELL and MAILTO, so the settings
// that all jobs share are in crond's environment.
func (w *world) busybox(env ...string) {
	w.Helper()
	for _, name := range []string{"busybox-static", "busybox"} {
		list, err := exec.Command(name, "--list").Output()
		if path, _ := exec.LookPath(name); err == nil && slices.Contains(strings.Fields(string(list)), "crond") {
			w.daemon = slices.Concat([]string{"env"}, env, []string{path, "crond", "-f", "-L", w.path("log"), "-c", w.path("spool/crontabs")})
			return
		}
	}
	need.Skip(w, "no busybox with crond")
}

// note has no #! line.
const note = `out=$1; shift; { echo "$#"; printf '<%s>\n' "$@"; cat; } >$out.part; mv $out.part $out
`

// notes reads the files in a directory.
func (w *world) notes(dir string) map[string]string {
	w.Helper()
	entries := must.Get(os.ReadDir(w.path(dir)))(w)
	notes := map[string]string{}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, ".part") {
			notes[name] = w.read(dir + "/" + name)
		}
	}
	return notes
}

// The lines stand unchanged in root's crontab, and wrapped in /etc/crontab.
func TestWrappedLinesBehaveInARealCronAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("note", note, 0o755)
	for _, dir := range []string{"before", "after"} {
		must.Do(t, os.Mkdir(w.path(dir), 0o755))
	}
	text := strings.ReplaceAll(unguarded, "{dir}", w.dir)
	before := "OUT=" + w.path("before") + "\n" + strings.ReplaceAll(text, "{when}", "* * * * * ")
	system := "OUT=" + w.path("after") + "\nADLOCK_DIR=" + w.path("locks") + "\nADLOCK_HOST=" + host + "\n" + strings.ReplaceAll(text, "{when}", "* * * * *\troot\t")
	wrapper := lines.Wrapper{Adlock: w.path("adlock")}
	wrapped := wrapper.Wrap(lines.Read(system, true))
	check.Equal(t, "files", wrapped.Done, files)
	w.start(before, wrapped.Text)
	w.await("all have run, with a lock and without", func() bool {
		return len(w.notes("before")) == files && len(w.notes("after")) == files && strings.Count(w.record(), string(runlog.Release)) >= files
	})
	after := w.notes("after")
	for name, seen := range w.notes("before") {
		check.Equal(t, "wrapped "+name, after[name], seen)
	}
}
