package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/learn"
	"adlock/lib/record"
	"adlock/test/support/helper"
	"adlock/test/support/need"
	"adlock/test/support/story"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// checked runs c and expects the status, the output out, and err in standard error ("": nothing).
func (p place) checked(t *testing.T, c helper.Command, status int, out, err string) {
	t.Helper()
	r := c.Run(t)
	if r.Status != status || r.Out != out || !strings.Contains(r.Err, err) || (err == "") != (r.Err == "") {
		t.Errorf("%q: %+v, want status %d", c.Args[1:], r, status)
	}
}

const wrongTab = "* * * * * flock -n /run/x /bin/a; /bin/b\n"

func TestAMistakeIsReportedWithLineReasonAndCure(t *testing.T) {
	p := newPlace(t)
	tab := file(t, "tab", "# jobs\n"+wrongTab)
	told := ":2: only the first is locked: flock holds the lock while a runs, and ; b runs without it; say flock … sh -c '…' for both\n"
	fine := file(t, "fine", "* * * * * true\n")
	note := file(t, "note", "@daily /bin/adlock run --name n --expire-after 1h -- true\n")
	p.checked(t, p.command("check", fine, tab), 1, tab+told, "")
	p.checked(t, p.command("check", fine), 0, "", "")
	p.checked(t, p.command("check", note), 0, note+":1: note: ends only at the next start, in 1d; ADLOCK_ENFORCE=1 ends it after 1h\n", "")
	c := p.command("check", "-")
	c.Stdin = "# jobs\n" + wrongTab
	p.checked(t, c, 1, "-"+told, "")
	c.Stdin = "* * * * *  /bin/adlock run --stroe etcd://a:2379/p -- /bin/true\n"
	p.checked(t, c, 1, "-:1: an option that is refused: the job is never run: --stroe: unknown option: did you mean --store?; adlock run --help lists the options\n", "")
	p.checked(t, p.command("check", "", fine), 64, "", "check: FILE must not be empty")
	p.checked(t, p.command("check"), 64, "", "check: wants a FILE (-: standard input), or --system")
	p.checked(t, p.command("check", "--user-colum", fine), 64, "", "did you mean --user-column?")
}

// A named pipe must not block the check.
func TestCheckRefusesANonCrontabAndReadsTheNextFile(t *testing.T) {
	p := newPlace(t)
	tab := file(t, "tab", wrongTab)
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		fifo:                                {64, fifo + ": is no regular file"},
		"/dev/zero":                         {64, ": is no regular file"},
		tab + ".none":                       {69, "no such file"},
		file(t, "prose", "What is this?\n"): {64, ": is no crontab: line 1: neither a comment nor a variable, "},
		file(t, "huge", strings.Repeat(wrongTab, 1<<20/20)): {64, ": is no crontab: "},
	} {
		r := p.command("check", path, tab).Run(t)
		if r.Status != want.status || !strings.Contains(r.Err, want.text) || strings.Count(r.Err, "\n") != 1 || !strings.HasPrefix(r.Out, tab+":1: ") {
			t.Errorf("%s: %+v, want %v", path, r, want)
		}
	}
	r := p.command("check", fifo, "/dev/null", tab+".none", tab).Run(t)
	if r.Status != 69 || strings.Count(r.Err, "\n") != 3 || !strings.HasPrefix(r.Out, tab+":1: ") {
		t.Errorf("several: %+v", r)
	}
}

func TestCheckReportsAFileThatItMayNotRead(t *testing.T) {
	need.Root(t)
	p := newPlace(t)
	c := within(t, p, nobodys+` && printf '#!/bin/sh\n' >/mnt/secret && chmod 600 /mnt/secret && exec setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/adlock check /mnt/secret`)
	p.checked(t, c, 77, "", "/mnt/secret: open: permission denied")
}

func TestCheckComparesALimitWithLoggedAndLearnedRuntimes(t *testing.T) {
	p := newPlace(t)
	tab := file(t, "tab", "* * * * * /usr/local/bin/adlock run --name slow --expire-after 1h -- /bin/job\n")
	p.checked(t, p.command("check", tab), 0, "", "")
	var learned learn.State
	learned.Succeeded(90 * time.Minute)
	last := filepath.Join(p.dir, atom.Named("slow", "dax").Name().LastLock())
	must(t, os.WriteFile(last, record.Memory{Learned: learned}.Bytes(), 0o600))
	p.command("check", tab).Run(t).Is(t, 1, tab+":1: ExpireAfter below the runtime: it is 1h, …", "")
	must(t, os.Remove(last))
	s := &story.Story{}
	s.Job("adlock run slow", 0, 2*time.Hour).Run(0, 90*time.Minute, 0)
	p.write(t, s)
	p.checked(t, p.command("check", tab), 1, tab+":1: ExpireAfter below the runtime: it is 1h, and a run that succeeded took 1h30m; give it more time, or say auto (not for jobs that wait for a database or ssh)\n", "")
}

// theSystem replaces the crontabs of the machine.
const theSystem = `mount -t tmpfs none /etc/cron.d && mount -t tmpfs none /var/spool/cron && mkdir -m 1730 /var/spool/cron/crontabs &&
	{ [ ! -e /etc/crontab ] || { >/etc/cron.d/.none && mount --bind /etc/cron.d/.none /etc/crontab; }; } &&
	printf '\043\n* * * * * root /bin/adlock run --name backup -- /bin/a\n' >/etc/cron.d/backup &&
	printf '\043!/bin/sh\n' >/etc/cron.d/script &&
	printf 'SHELL=/usr/lib/adlock/shell\n* * * * * : backup ; if /bin/b; then /bin/c; fi\n' >/var/spool/cron/crontabs/root && `

func TestCheckSystemComparesAllCrontabsOfTheMachine(t *testing.T) {
	p := newPlace(t)
	need.Root(t)
	if _, err := os.Stat("/etc/cron.d"); err != nil {
		need.Skip(t, "no cron.d on this machine")
	}
	if _, err := os.Stat("/var/spool/cron"); err != nil {
		need.Skip(t, "no spool of crontabs on this machine")
	}
	c := within(t, p, theSystem+`exec "$0" check --system`)
	const told = "/var/spool/cron/crontabs/root:2: one lock for two jobs: /etc/cron.d/backup:2 has it too, for another job: while one runs the other is skipped; " +
		"give each a name of its own (: NAME ; or --name), or have both wait (--wait, ADLOCK_WAIT)\n"
	p.checked(t, c, 64, told, "/etc/cron.d/script: is no crontab, but a script: shellcheck looks for mistakes in those\n")
	p.checked(t, within(t, p, theSystem+`rm /etc/cron.d/script; exec "$0" check --system`), 1, told, "")
	writable := theSystem + `rm /etc/cron.d/script; printf '* * * * * root /bin/adlock run --name backup -- /bin/z\n' >/etc/cron.d/a; chmod 664 /etc/cron.d/a; exec "$0" check --system`
	p.checked(t, within(t, p, writable), 1, "/etc/cron.d/a:1: a file that cron never reads: others than its owner may write to it; chmod go-w it\n"+told, "")
	unknown := theSystem + `rm /etc/cron.d/script; printf '* * * * * nobody:nogroup true\n' >/etc/cron.d/a; exec "$0" check --system`
	p.checked(t, within(t, p, unknown), 1, "/etc/cron.d/a:1: a line that cron refuses: no such user: nobody:nogroup, and Debian's cron then runs nothing of the crontab, or never this line; write it as in crontab(5)\n"+told, "")
	homeless := ownEtc + theSystem + `said() { printf "* * * * * nobody $1 -- true\n" >/etc/cron.d/a; "$adlock" doctor | grep -c '^warn users'; }; adlock=$0
		said 'HOME=/none adlock run --name n'; said 'ADLOCK_STORE=/x adlock run --name n'; said 'adlock run --store /x --name n'
		echo ADLOCK_DIR=/x >/etc/adlock.conf; said 'HOME=/none adlock run --name n'; rm /etc/adlock.conf
		chmod 664 /etc/cron.d/a; said 'HOME=/none adlock run --name n'`
	p.checked(t, within(t, p, homeless), 1, "1\n0\n0\n0\n0\n", "")
	c = within(t, p, nobodys+" && "+theSystem+`rm /etc/cron.d/script; exec setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/adlock check --system`)
	p.checked(t, c, 77, "", "adlock: /var/spool/cron/crontabs: open: permission denied\n")
}

func TestCheckReportsAHOMEVariableThatMovesTheLocks(t *testing.T) {
	t.Parallel()
	r := onHost(t, `mkdir /mnt/app; chown one /mnt/app
printf 'HOME=/mnt/app\n* * * * * one /mnt/adlock run --name n -- true\n' | $a check -u -
printf 'HOME=/mnt/app\n* * * * * /mnt/adlock run --name n -- true\n' | $a check -
printf 'HOME=/mnt/app\n* * * * * /mnt/adlock run --name n -- true\n' | as one $a check -
printf 'HOME=/mnt/one\n* * * * * /mnt/adlock run --name n -- true\n' | $a check - && echo right
printf 'ADLOCK_DIR=/mnt/app\n* * * * * /mnt/adlock run --name n -- true\n' | $a check - | grep -c ' /var/lib/adlock;'`)
	const moved = "-:1: a HOME that moves the locks: the locks of the jobs below are in /mnt/app/.local/state/adlock, and those of the same jobs by hand in " +
		"/mnt/one/.local/state/adlock; leave HOME out, or say ADLOCK_DIR=/mnt/one/.local/state/adlock beside it\n"
	const noted = "-:1: note: HOME is one's: if the crontab is too, its locks are in /mnt/app/.local/state/adlock, " +
		"and those of the same jobs by hand may be elsewhere; say ADLOCK_DIR= with that user's lock directory beside HOME\n"
	r.Is(t, 0, moved+noted+moved+"right\n1\n", "")
}

func TestCheckAcceptsAHookFromTheUsersSettingsFile(t *testing.T) {
	t.Parallel()
	r := onHost(t, `mkdir -p /mnt/one/.config
tab() { printf 'MAILTO=""\n* * * * * one /mnt/adlock run --name n -- true\n'; }
tab | $a check -u - | cut -d: -f3
printf 'ADLOCK_WAIT=5s\n# ADLOCK_HOOK=/bin/tell\nADLOCK_SYSLOG=\n' >/mnt/one/.config/adlock.conf; chown -R one /mnt/one/.config
tab | $a check -u - | cut -d: -f3
echo ADLOCK_HOOK=/bin/tell >/mnt/one/.config/adlock.conf
tab | $a check -u - && echo right`)
	r.Is(t, 0, " told to nobody\n told to nobody\nright\n", "")
}
