package cron

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/lib/cronline"
	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// guarded is an old crontab, below one line that names its SHELL.
const guarded = `SHELL={dir}/shell
ADLOCK_DIR={dir}/locks
ADLOCK_HOST=dax
ADLOCK_PAUSE=1s
ADLOCK_HOOK={dir}/hook
MAILTO=admin
* * * * * {dir}/overrun 'a  "b"' $((1 + 1)) | cat
* * * * * : hang ADLOCK_EXPIRE_AFTER=2s ; {dir}/hang; echo next
* * * * * echo "failed:  $0 $SHELL"; false || exit 9
* * * * * sort; printf '50\%\% \%s ' "$LOGNAME"; pwd%second line%first \% line
@reboot : forked ; setsid -f {dir}/daemon forked </dev/null >/dev/null 2>&1
@reboot exec {dir}/daemon stays
* * * * * cd / && run-parts --report {dir}/parts
* * * * * {dir}/own/flock -n {dir}/f {dir}/flocked $SHELL
`

// guardedSystem has a user column, which is not part of cron's command. Its line runs once, so that
// its lock is gone when the test counts the others.
const guardedSystem = `SHELL={dir}/shell
ADLOCK_DIR={dir}/locks
ADLOCK_HOST=dax
@reboot	root	: column ; cat >{dir}/columned; id -un >>{dir}/columned%from the system
`

// overlong runs until the test has seen the denial of another start.
const overlong = `#!/bin/sh
mkdir {dir}/in-overrun || echo overlap >>{dir}/overlaps
echo "$@" >>{dir}/overruns
until [ -e {dir}/go ]; do sleep 0.1; done
rmdir {dir}/in-overrun
`

// The first run hangs with children: a signal ends one; the other, in a session of its own, ignores all but KILL.
const hang = `#!/bin/sh
echo run >>{dir}/hangs
if [ "$(wc -l <{dir}/hangs)" -eq 1 ]; then
	sleep 1000 &
	setsid sh -c 'trap "" INT TERM; echo $$ >{dir}/stubborn; while :; do sleep 1000; done' &
	while :; do sleep 1000; done
fi
`

const daemon = `#!/bin/sh
echo $$ >{dir}/daemon-$1
while :; do sleep 1000; done
`

func newGuardedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.shell()
	w.write("overrun", overlong, 0o755)
	w.write("hang", hang, 0o755)
	w.write("daemon", daemon, 0o755)
	w.write("hook", "#!/bin/sh\necho \"$SHELL $ADLOCK_STATUS $ADLOCK_TEXT\" >>{dir}/hooked\n", 0o755)
	for _, dir := range []string{"own", "parts"} {
		must.Do(t, os.Mkdir(w.path(dir), 0o755))
	}
	w.write("parts/part", "#!/bin/sh\necho part >>{dir}/parted\n", 0o755)
	w.write("own/flock", "#!/bin/sh\nexec flock \"$@\"\n", 0o755)
	w.write("flocked", "#!/bin/sh\necho \"$1\" >>{dir}/flocks\n", 0o755)
	return w
}

func TestOneLineGuardsAWholeCrontab(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	w.quick()
	w.start(guarded, guardedSystem)
	overrun, parts := nameOf(w.path("overrun")+` 'a  "b"' $((1 + 1)) | cat`), nameOf("cd / && run-parts --report "+w.path("parts"))

	w.await("the line with a user column has run", func() bool { return count(w.events("column"), runlog.Release) == 1 })
	check.Equal(t, "the line with a user column noted", w.read("columned"), "from the system\nroot\n")
	w.await("what overruns is denied at the next tick, what hangs is ended", func() bool {
		return count(w.events(overrun), runlog.Deny) > 0 && count(w.events("hang"), runlog.Takeover) == 1
	})
	w.write("go", "", 0o600)
	w.await("six ticks have passed", func() bool { return count(w.events(parts), runlog.Release) > 5 })
	w.wantMail(`(?m)^first % line\nsecond line\n50% root /root$`)
	w.wantLocked()

	w.replace(strings.Replace(guarded, "SHELL={dir}/shell\n", "", 1))
	w.await("without the line nothing is guarded any more", func() bool {
		return strings.Count(w.read("mail"), "failed:  /bin/sh /bin/sh") > strings.Count(w.record(), "status=9")+1
	})
	w.wantDaemons()
	w.wantOneLock("daemon stays")
}

const failing = `echo "failed:  $0 $SHELL"; false || exit 9`

// nameOf returns the operand of a line that has no name.
func nameOf(command string) string {
	name, _ := cronline.NameOf(command)
	return name
}

// wantLocked expects that the lines did their work, each at most once at a time.
func (w *world) wantLocked() {
	w.Helper()
	helper.Absent(w, w.path("overlaps"))
	if got := w.read("overruns"); strings.Trim(got, "a \"b2\n") != "" || !strings.HasPrefix(got, "a  \"b\" 2\n") {
		w.Errorf("the line's words were %q", got)
	}
	check.Equal(w, "the line that locks by itself noted", strings.ReplaceAll(w.read("flocks"), "/bin/sh\n", ""), "")
	if strings.Contains(w.record(), "flock") {
		w.Errorf("the line that locks by itself was locked:\n%s", w.record())
	}
	for _, e := range w.events(nameOf(failing)) {
		if e.Kind == runlog.Release && e.Status.Value != 9 {
			w.Errorf("the failing line is recorded with %+v", e)
		}
	}
	w.await("the hook is told", func() bool {
		told := w.read("hooked")
		return strings.Contains(told, "/bin/sh 9 run "+nameOf(failing)+": ") && strings.Contains(told, " run hang: ")
	})
}

// wantMail waits for the mail that all the crontabs cause, and for more. It expects no mail from the line
// that is denied.
func (w *world) wantMail(more ...string) {
	w.Helper()
	for _, pattern := range append(more,
		`(?m)^failed:  /bin/sh /bin/sh$`,
		`(?m)^adlock: run hang: ended process \d+ by force: .* ExpireAfter is 2s\nnext$`,
		`(?m)^adlock: run hang: ended by force by process \d+: .* ExpireAfter is 2s$`,
	) {
		w.await("there is mail like "+pattern, func() bool {
			return regexp.MustCompile(pattern).MatchString(w.read("mail"))
		})
	}
	if mail := w.read("mail"); regexp.MustCompile(`(?m)^Subject: .*overrun`).MatchString(mail) {
		w.Errorf("the line that was denied was mailed:\n%s", mail)
	}
}

// wantDaemons expects both @reboot daemons to live, and the one that does not fork to hold its lock.
func (w *world) wantDaemons() {
	w.Helper()
	if got := w.story("forked"); got != "acquire; release 0" {
		w.Errorf("the record of a line that starts a daemon tells %s", got)
	}
	check.Equal(w, "the record of a line that is a daemon", w.story(nameOf("exec "+w.path("daemon")+" stays")), "acquire")
	living := strings.Join(w.processes(), "\n")
	for _, daemon := range []string{"forked", "stays"} {
		helper.Contains(w, living, w.path("daemon")+" "+daemon)
	}
}

// wantOneLock expects no active lock but the operand's, once all other jobs have ended.
func (w *world) wantOneLock(operand string) {
	w.Helper()
	var files []string
	w.await("one lock is held", func() bool {
		files, _ = filepath.Glob(w.path("locks/lock.*"))
		return len(files) == 1
	})
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), operand) {
			w.Errorf("left behind: %s: %s", file, text)
		}
	}
}

// replace replaces root's crontab as crontab(1) does: cron looks at the directory.
func (w *world) replace(crontab string) {
	w.Helper()
	w.write("spool/new", crontab, 0o600)
	must.Do(w, os.Rename(w.path("spool/new"), w.path("spool/crontabs/root")))
}
