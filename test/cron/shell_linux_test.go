package cron

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/lib/cronline"
	"adlock/lib/runlog"
	"adlock/test/support/must"
)

// guarded is an old crontab, below one line that names its SHELL.
const guarded = `SHELL={world}/shell
ADLOCK_DIR={world}/locks
ADLOCK_HOST=dax
ADLOCK_PAUSE=1s
ADLOCK_HOOK={world}/hook
MAILTO=admin
* * * * * {world}/overrun 'a  "b"' $((1 + 1)) | cat
* * * * * : hang ADLOCK_EXPIRE_AFTER=2s ; {world}/hang; echo next
* * * * * echo "failed:  $0 $SHELL"; false || exit 9
* * * * * sort; printf '50\%\% \%s ' "$LOGNAME"; pwd%second line%first \% line
@reboot : forked ; setsid -f {world}/daemon forked </dev/null >/dev/null 2>&1
@reboot exec {world}/daemon stays
* * * * * cd / && run-parts --report {world}/parts
* * * * * {world}/own/flock -n {world}/f {world}/flocked $SHELL
`

// guardedSystem has a user column, which is not part of cron's command. Its line runs once, so that
// its lock is gone when the test counts the others.
const guardedSystem = `SHELL={world}/shell
ADLOCK_DIR={world}/locks
ADLOCK_HOST=dax
@reboot	root	: column ; cat >{world}/columned; id -un >>{world}/columned%from the system
`

// overlong runs until the test has seen the denial of another start.
const overlong = `#!/bin/sh
mkdir {world}/in-overrun || echo overlap >>{world}/overlaps
echo "$@" >>{world}/overruns
until [ -e {world}/go ]; do sleep 0.1; done
rmdir {world}/in-overrun
`

// The first run hangs with children: a signal ends one; the other, in a session of its own,
// ignores all but KILL.
const hang = `#!/bin/sh
echo run >>{world}/hangs
if [ "$(wc -l <{world}/hangs)" -eq 1 ]; then
	sleep 1000 &
	setsid sh -c 'trap "" INT TERM; echo $$ >{world}/stubborn; while :; do sleep 1000; done' &
	while :; do sleep 1000; done
fi
`

const daemon = `#!/bin/sh
echo $$ >{world}/daemon-$1
while :; do sleep 1000; done
`

func newGuardedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.shell(t)
	w.write(t, "overrun", overlong, 0o755)
	w.write(t, "hang", hang, 0o755)
	w.write(t, "daemon", daemon, 0o755)
	w.write(t, "hook", "#!/bin/sh\necho \"$SHELL $ADLOCK_STATUS $ADLOCK_TEXT\" >>{world}/hooked\n", 0o755)
	for _, dir := range []string{"own", "parts"} {
		must.Do(t, os.Mkdir(w.path(dir), 0o755))
	}
	w.write(t, "parts/part", "#!/bin/sh\necho part >>{world}/parted\n", 0o755)
	w.write(t, "own/flock", "#!/bin/sh\nexec flock \"$@\"\n", 0o755)
	w.write(t, "flocked", "#!/bin/sh\necho \"$1\" >>{world}/flocks\n", 0o755)
	return w
}

func TestOneLineGuardsAWholeCrontab(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	w.quick(t)
	w.start(t, guarded, guardedSystem)
	overrun, parts := nameOf(w.path("overrun")+` 'a  "b"' $((1 + 1)) | cat`), nameOf("cd / && run-parts --report "+w.path("parts"))

	w.await(t, "the line with a user column has run", func() bool { return count(w.events(t, "column"), runlog.Release) == 1 })
	if got := w.read(t, "columned"); got != "from the system\nroot\n" {
		t.Errorf("the line with a user column noted %q", got)
	}
	w.await(t, "what overruns is denied at the next tick, what hangs is ended", func() bool {
		return count(w.events(t, overrun), runlog.Deny) > 0 && count(w.events(t, "hang"), runlog.Takeover) == 1
	})
	w.write(t, "go", "", 0o600)
	w.await(t, "six ticks have passed", func() bool { return count(w.events(t, parts), runlog.Release) > 5 })
	w.wantMail(t, `(?m)^first % line\nsecond line\n50% root /root$`)
	w.wantLocked(t)

	w.replace(t, strings.Replace(guarded, "SHELL={world}/shell\n", "", 1))
	w.await(t, "without the line nothing is guarded any more", func() bool {
		return strings.Count(w.read(t, "mail"), "failed:  /bin/sh /bin/sh") > strings.Count(w.record(), "status=9")+1
	})
	w.wantDaemons(t)
	w.wantOneLock(t, "daemon stays")
}

const failing = `echo "failed:  $0 $SHELL"; false || exit 9`

// nameOf is the operand of a line that has no name.
func nameOf(command string) string {
	name, _ := cronline.NameOf(command)
	return name
}

// wantLocked expects that the lines did their work, each at most once at a time.
func (w *world) wantLocked(t *testing.T) {
	t.Helper()
	if w.has("overlaps") {
		t.Error("a line ran twice at the same time")
	}
	if got := w.read(t, "overruns"); strings.Trim(got, "a \"b2\n") != "" || !strings.HasPrefix(got, "a  \"b\" 2\n") {
		t.Errorf("the line's words were %q", got)
	}
	if got := w.read(t, "flocks"); strings.ReplaceAll(got, "/bin/sh\n", "") != "" {
		t.Errorf("the line that locks by itself noted %q", got)
	}
	if strings.Contains(w.record(), "flock") {
		t.Errorf("the line that locks by itself was locked:\n%s", w.record())
	}
	for _, e := range w.events(t, nameOf(failing)) {
		if e.Kind == runlog.Release && e.Status.Value != 9 {
			t.Errorf("the failing line is recorded with %+v", e)
		}
	}
	w.await(t, "the hook is told", func() bool {
		told := w.read(t, "hooked")
		return strings.Contains(told, "/bin/sh 9 run "+nameOf(failing)+": ") && strings.Contains(told, " run hang: ")
	})
}

// wantMail waits for the mail that the crontabs have in common, and more. It expects no mail from
// the line that is denied.
func (w *world) wantMail(t *testing.T, more ...string) {
	t.Helper()
	for _, pattern := range append(more,
		`(?m)^failed:  /bin/sh /bin/sh$`,
		`(?m)^adlock: run hang: ended process \d+ by force: .* ExpireAfter is 2s\nnext$`,
		`(?m)^adlock: run hang: ended by force by process \d+: .* ExpireAfter is 2s$`,
	) {
		w.await(t, "there is mail like "+pattern, func() bool {
			return regexp.MustCompile(pattern).MatchString(w.read(t, "mail"))
		})
	}
	if mail := w.read(t, "mail"); regexp.MustCompile(`(?m)^Subject: .*overrun`).MatchString(mail) {
		t.Errorf("the line that was denied was mailed:\n%s", mail)
	}
}

// wantDaemons expects both @reboot daemons to live, and the one that does not fork to hold its
// lock.
func (w *world) wantDaemons(t *testing.T) {
	t.Helper()
	if got := w.story(t, "forked"); got != "acquire; release 0" {
		t.Errorf("the record of a line that starts a daemon tells %s", got)
	}
	if got := w.story(t, nameOf("exec "+w.path("daemon")+" stays")); got != "acquire" {
		t.Errorf("the record of a line that is a daemon tells %s", got)
	}
	living := strings.Join(w.processes(t), "\n")
	for _, daemon := range []string{"forked", "stays"} {
		if !strings.Contains(living, w.path("daemon")+" "+daemon) {
			t.Errorf("the daemon of @reboot that %s was ended; alive are\n%s", daemon, living)
		}
	}
}

// wantOneLock expects no active lock but the operand's, once all other jobs have ended.
func (w *world) wantOneLock(t *testing.T, operand string) {
	t.Helper()
	var files []string
	w.await(t, "one lock is held", func() bool {
		files, _ = filepath.Glob(w.path("locks/lock.*"))
		return len(files) == 1
	})
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), operand) {
			t.Errorf("left behind: %s: %s", file, text)
		}
	}
}

// replace replaces root's crontab as crontab(1) does: cron looks at the directory.
func (w *world) replace(t *testing.T, crontab string) {
	t.Helper()
	w.write(t, "spool/new", crontab, 0o600)
	must.Do(t, os.Rename(w.path("spool/new"), w.path("spool/crontabs/root")))
}
