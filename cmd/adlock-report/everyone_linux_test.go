package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/limit"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// host makes a machine with root, the users one and two, who have one atom each, the user mallory, and an adlock that
// all users may run. In a script $a is that adlock, $d mallory's lock directory, and `as USER` runs a command.
const host = `umask 022; mount -t tmpfs -o mode=755 none /var/lib && mount -t tmpfs -o mode=755 none /mnt && cp "$0" "${0%/*}"/adlock-* /mnt && grep ^root: /etc/passwd >/mnt/passwd || exit 99
a=/mnt/adlock; d=/mnt/mallory/.local/state/adlock; unset ADLOCK_DIR
as() { who=$1; shift; HOME=/mnt/$who setpriv --reuid "$who" --regid 65534 --clear-groups "$@"; }
for u in one:3900001 two:3900002 mallory:3900003; do
	echo "${u%:*}:x:${u#*:}:65534::/mnt/${u%:*}:/bin/sh" >>/mnt/passwd; mkdir -m 700 /mnt/${u%:*}; chown "${u#*:}" /mnt/${u%:*}
done
mount --bind /mnt/passwd /etc/passwd || exit 99
as one $a run --name first -- true && as two $a run --name second -- sh -c 'exit 3'
as mallory mkdir -p -m 700 $d && chmod 700 $d || exit 99
`

func onHost(t *testing.T, script string) helper.Result {
	t.Helper()
	r := within(t, somewhere(t), host+script).Run(t)
	if r.Status == 99 {
		t.Fatalf("%+v", r)
	}
	return r
}

func TestRootIsShownTheAtomsOfAllUsers(t *testing.T) {
	t.Parallel()
	r := onHost(t, `export ADLOCK_HOST=other; as one $a run --name elsewhere -- true; export ADLOCK_HOST=dax
$a run --name own -- true
$a status --all-users && $a log --all-users --event release && $a report --all-users --csv && $a metrics --all-users`)
	r.Is(t, 0, "…", "")
	has(t, r.Out, "ATOM                  HOST   USER ", "adlock run first      dax    one ", "adlock run second     dax    two ", "adlock run own        dax    root ",
		"release   two: adlock run second: ", "release   one: adlock run elsewhere on other: ", "\ntwo,adlock,dax,run,second,1,",
		`adlock_runs_total{user="two",program="adlock",host="dax",operator="run",operand="second",outcome="failure"} 1`,
		`adlock_user_read{user="mallory"} 1`, `adlock_user_omitted_atoms{user="one"} 0`)
}

func TestAnAtomsWholeNameWinsOverPartsAmongAllUsers(t *testing.T) {
	t.Parallel()
	r := onHost(t, `as one $a run --name firstborn -- true; as two $a run --name firstling -- true
for v in status log report; do $a $v --all-users first; done`)
	if r.Err != "" || strings.Contains(r.Out, "firstborn") || strings.Contains(r.Out, "firstling") || strings.Count(r.Out, "adlock run first") < 3 {
		t.Errorf("%+v", r)
	}
}

func TestThePauseOfTheHostIsShownOnceForEachUser(t *testing.T) {
	t.Parallel()
	r := onHost(t, `as one $a run --name again -- true; as one $a pause first --for 1h --why 000; (cd /mnt/one/.local/state/adlock; sed -i s/000/$(printf %09000d 7)/ last.*.first; COLUMNS=80 $a status --all-users | grep -c 000); as one $a resume first
as one $a run --name gone -- /nosuch 2>&1; $a pause --all --for 2h --why upgrade && $a status --all-users && $a metrics --all-users; as one $a status gone | grep gone`)
	has(t, r.Out, `adlock_paused_since_timestamp_seconds{user="one",`, `adlock_paused_since_timestamp_seconds{user="two",`)
	if r.Status != 0 || r.Err != "" || len(regexp.MustCompile(`run gone +(one +)?paused `).FindAllString(r.Out, -1)) != 2 || !regexp.MustCompile(`^2\d\n`).MatchString(r.Out) || len(regexp.MustCompile(`paused: for (2h|1h59m)`).FindAllString(r.Out, -1)) != 2 {
		t.Errorf("%+v", r)
	}
}

// If the file of the pause cannot be used, no job is run.
func TestAPauseFileThatCannotBeUsedCountsAsAPause(t *testing.T) {
	t.Parallel()
	const says = "/var/lib/adlock.pause: must be a regular file of root that no other user may write; as root: adlock resume --all\n"
	r := onHost(t, `$a run --name own -- true; mkdir /var/lib/adlock.pause
$a run --name own -- echo ran; $a run --name own --dry-run -- true; echo $?; $a status --json; $a status --all-users; $a metrics; $a doctor | grep -e "fail pause"; $a resume --all`)
	has(t, r.Out, "77\n", `"state":"paused",`, `"takeable":false,"why":"paused: until it is resumed (/var/lib/adlock.pause cannot be used)"`,
		"adlock run second  two   paused ", "adlock_paused_since_timestamp_seconds{", "fail pause: "+says)
	if r.Err != "adlock: run own: not run: "+says+strings.Repeat("adlock: "+says, 4) || strings.Contains(r.Out, "ran\n") {
		t.Errorf("%+v", r)
	}
}

func TestTheLogNamesTheUserWhoPausedOrResumed(t *testing.T) {
	t.Parallel()
	r := onHost(t, `export SUDO_USER=alice; $a pause --all --for 1h --why disk; mv /var/lib/adlock.pause /mnt; $a run --name own -- true; mv /mnt/adlock.pause /var/lib; $a pause own --for never; unset SUDO_USER; $a resume --all 2>&-; $a resume own; $a resume own; $a resume --all
as one $a pause --all --for never --why moves; $a log --all-users --event pause,resume | cut -c 26- | sed s/pid.[0-9]*/pid/`)
	const want = `pause     root: all jobs of this host: pid, paused: for 1h more (disk), by alice
pause     root: adlock run own: pid, paused: until it is resumed, by alice
resume    root: all jobs of this host: pid, by root
resume    root: adlock run own: pid, by root
pause     one: adlock run first: pid, paused: until it is resumed (moves), by one
`
	r.Is(t, 0, want, "")
}

func TestResumingTheHostNamesAtomsThatStayPaused(t *testing.T) {
	t.Parallel()
	r := onHost(t, `for n in a b c; do $a run --name $n -- true; done; $a pause a c --for 1h; $a pause --all --for 1h; $a resume --all && $a resume a && $a resume b; as one $a resume --all`)
	r.Is(t, 0, "…", "adlock: resume: paused by name, and not resumed: adlock.dax.run.a adlock.dax.run.c\n")
}

func TestJSONNamesTheUserOfEachAtom(t *testing.T) {
	t.Parallel()
	r := onHost(t, `$a status --all-users --json; $a log --all-users --json -n 1; $a report --all-users --json`)
	lines := strings.Split(r.Out, "\n")
	var rows []struct {
		Operand, User string
		UID           int
	}
	var event struct{ User string }
	var reports []struct{ User string }
	for i, into := range []any{&rows, &event, &reports} {
		if err := json.Unmarshal([]byte(lines[i]), into); err != nil {
			t.Fatalf("%v: %s", err, lines[i])
		}
	}
	if got := fmt.Sprint(rows, event, reports); got != "[{first one 3900001} {second two 3900002}] {two} [{one} {two}]" {
		t.Error(got)
	}
}

func TestStatusOfAllUsersExitsWith141IfItsOutputIsClosed(t *testing.T) {
	t.Parallel()
	r := onHost(t, `{ until [ -e /mnt/gone ]; do :; done; $a status --all-users; echo $? >&2; } | { exec <&-; : >/mnt/gone; }`)
	r.Is(t, 0, "…", "141\n")
}

func TestOnlyRootMayUseTheOptionAllUsers(t *testing.T) {
	t.Parallel()
	r := onHost(t, `for v in status "status --watch" metrics log report; do as one timeout 30 $a $v --all-users; echo $?; done; ADLOCK_STORE=etcd://h/p $a status --all-users; echo $?`)
	if r.Out != "77\n77\n77\n77\n77\n64\n" || strings.Count(r.Err, "adlock: --all-users: reads the lock directories of other users, and is for root\n") != 5 {
		t.Errorf("%+v", r)
	}
}

func TestEachWatchedTableIsFollowedByItsErrors(t *testing.T) {
	t.Parallel()
	r := onHost(t, `timeout 30 $a status --all-users --watch nosuch; echo $?; chmod 777 $d /mnt/two/.local/state/adlock
for v in --watch "--watch --failed --json"; do timeout 30 $a status --all-users $v 2>&1 | sed '/writable/q'; done`)
	const errors = `adlock: /mnt/two/\S* lock directory is writable by others[^\n]*/mnt/mallory/\S* lock directory is writable by others[^\n]*\n`
	if r.Status != 0 || !regexp.MustCompile(`^64\nATOM [^\n]*\n[^\n]* first [^\n]*\n`+errors+`\[\]\n`+errors+`$`).MatchString(r.Out) || !strings.Contains(r.Err, "nosuch") {
		t.Errorf("%+v", r)
	}
}

func TestStatusShowsAtomsOfAUserWhoIsNotInPasswd(t *testing.T) {
	t.Parallel()
	r := onHost(t, `$a init one && as one $a run --name third -- true; $a init 3900009 2>/dev/null
mkdir -m 700 /var/lib/adlock-3900009 && chown 3900009:3900009 /var/lib/adlock-3900009 && HOME=/ setpriv --reuid 3900009 --regid 3900009 --clear-groups $a run --name fourth -- true
rm -r /mnt/two/.local; $a status --all-users`)
	has(t, r.Out, "fourth", "3900009")
}

// Files in mallory's directory do not hide the other users' atoms, and do not make root's commands
// show the content of root's file.
func TestAHostileDirectoryShowsNoSecretAndHidesNoOtherUser(t *testing.T) {
	t.Parallel()
	secret := `echo "$secret" >/mnt/secret; chmod 600 /mnt/secret; secret=ROOTSECRET; echo "1 $secret program=$secret" >/mnt/secret; `
	verbs := "status metrics log report"
	if !need.Soak {
		verbs = "status"
	}
	for _, c := range []struct {
		name, script, says string
		status             int
	}{
		{"links to a file of root", `cd $d; for f in lock.a.b.c.d last.a.b.c.e program.dax.runlog; do as mallory ln -s /mnt/secret $f; done`, "program.dax.runlog: ", 77},
		{"hard links to it", `cd $d; for f in lock.a.b.c.d last.a.b.c.e program.dax.runlog; do ln /mnt/secret $f; done`, "program.dax.runlog: open: permission denied", 77},
		{"pipes", `cd $d; as mallory mkfifo lock.a.b.c.d last.a.b.c.e program.dax.runlog program.dax.runlog.1`, "not a regular file", 77},
		{"directories", `cd $d; as mallory mkdir lock.a.b.c.d last.a.b.c.e program.dax.runlog`, "is a directory", 71},
		{"a link on the way", `rm -r /mnt/mallory/.local; as mallory ln -s /mnt/one/.local /mnt/mallory/.local`, "/mnt/mallory/.local: is no directory, and a link is not followed", 77},
		{"a link to a directory of root", `rmdir $d; as mallory ln -s /var/lib/adlock $d`, "/mnt/mallory/.local/state/adlock: is no directory, and a link is not followed", 77},
		{"a link through /proc", `rmdir $d; as mallory ln -s /proc/self/cwd $d`, "is no directory, and a link is not followed", 77},
		{"a pipe on the way", `rmdir $d; as mallory mkfifo $d`, "is no directory", 77},
		{"another user's directory", `chown 3900001 $d; chmod 755 $d`, "belongs to another user", 77},
		{"a directory that others may write", `chmod 777 $d`, "is writable by others", 77},
		{"files of terabytes", `cd $d; as mallory truncate -s 1T lock.a.b.c.d last.a.b.c.e; as mallory truncate -s 10G program.dax.runlog`, "", 0},
		{"a runlog of garbage", `yes x | head -n 100000 >$d/program.dax.runlog; chown mallory $d/*`, "the runlog was not read to its end", 69},
		{"many files", `cd $d; as mallory sh -c 'seq -f last.p.dax.run.f%.0f 12000 | xargs touch'`, "has more than 10000 files, and not all were read", 69},
		{"many runlogs", `cd $d; as mallory sh -c 'seq -f program.h%.0f.runlog 50 | xargs touch'`, "has more than 8 runlogs, and not all were read", 69},
	} {
		script := secret + c.script + "; cd /; for v in " + verbs + "; do echo @; $a $v --all-users 2>&1; echo \"status $?\"; done"
		parts := strings.Split(onHost(t, script).Out, "@\n")[1:]
		if len(parts) != len(strings.Fields(verbs)) {
			t.Fatalf("%s: %d answers", c.name, len(parts))
		}
		for _, part := range parts {
			if !strings.Contains(part, c.says) || !strings.HasSuffix(part, fmt.Sprintf("status %d\n", c.status)) || strings.Contains(part, "ROOTSECRET") {
				t.Errorf("%s: %s", c.name, part[:min(len(part), 1000)])
			}
			has(t, part, "first", "second")
		}
	}
}

func TestStatusShowsTheUserOfALocksDirectoryNotOfItsPid(t *testing.T) {
	t.Parallel()
	r := onHost(t, `sleep 60 & kill -STOP $!
printf '%d\n' $! >$d/lock.p.dax.run.x; printf '\033[2J' >>$d/lock.p.dax.run.x; chown mallory $d/*; chmod 600 $d/*; touch $d/last.$(printf '\033')
$a status --all-users --atom 'p run x'; kill -KILL $!`)
	if strings.ContainsRune(r.Out+r.Err, '\033') || strings.Contains(r.Out, "kill -CONT") {
		t.Errorf("%+v", r)
	}
	has(t, r.Out, "mallory")
}

func TestMetricsHaveAtMost200AtomsOfAnotherUser(t *testing.T) {
	t.Parallel()
	r := onHost(t, `cd $d; as mallory sh -c 'seq -f last.p.dax.run.f%.0f 250 | xargs touch'; cd /; $a metrics --all-users`)
	if n := strings.Count(r.Out, `adlock_overdue{user="mallory"`); n != 200 || r.Status != 0 {
		t.Errorf("%d, %d: %s", n, r.Status, r.Err)
	}
	has(t, r.Out, `adlock_user_omitted_atoms{user="mallory"} 50`)
}

func TestCheckComparesALimitWithTheRunsOfTheLinesUser(t *testing.T) {
	t.Parallel()
	r := onHost(t, `$a run --name slow -- sleep 1.2 & as one $a run --name slow -- sleep 1.2; wait; mkdir -p /mnt/spool/cron/crontabs && mount --bind /mnt/spool /var/spool || exit 99
echo '1 1 * * * adlock run --name slow --expire-after 1s -- x' >/var/spool/cron/crontabs/one; for u in two gone root; do cp /var/spool/cron/crontabs/one /var/spool/cron/crontabs/$u; done
$a check --system`)
	has(t, r.Out, "/var/spool/cron/crontabs/one:1: ExpireAfter below the runtime: ", "/var/spool/cron/crontabs/root:1: ExpireAfter below the runtime: ")
	if strings.Count(r.Out, "ExpireAfter below the runtime") != 2 {
		t.Errorf("%+v", r)
	}
}

func TestAUserIsNotToldThatOthersHaveNoDirectory(t *testing.T) {
	t.Parallel()
	onHost(t, `echo '0 1 * * * one /mnt/adlock run --name n -- true' >/mnt/site; as two $a check -u /mnt/site`).Is(t, 0, "", "")
}

// unanswered runs a verb while a file system is mounted at that directory whose server reads a request and
// does not answer: no signal ends the wait of the thread that made it.
func unanswered(t *testing.T, at, setUp, verb string) helper.Result {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		need.Skip(t, "no /dev/fuse")
	}
	self, err := os.Executable()
	must(t, err)
	r := onHost(t, setUp+`; mkdir /mnt/ready; NEVER_ANSWERS=`+at+` `+self+` & f=$!
until [ -e /mnt/ready/yes ] || ! kill -0 $f 2>/dev/null; do sleep 0.05; done; kill -0 $f || exit 98
timeout -s KILL 30 $a `+verb+`; echo "status $?"; kill -KILL $f; wait`)
	if r.Status == 98 {
		need.Skip(t, "no FUSE to be had: ", r.Err)
	}
	return r
}

// siteOf makes a crontab of the system with two lines of mallory's.
const siteOf = `mount -t tmpfs none /etc/cron.d && printf '%s* * * * * mallory /usr/bin/adlock run --name m -- true\n* * * * * mallory sleep 1\n' >/etc/cron.d/site`

// A user may mount a file system on the home, and on a directory that `adlock init` made.
func TestAFileSystemThatNeverAnswersIsSkipped(t *testing.T) {
	t.Parallel()
	const home, made, dir, leftOut = "/mnt/mallory", "/var/lib/adlock-3900003", "/mnt/mallory/.local/state/adlock", "mallory: does not answer, and is left out\n"
	const wrapped = "mallory /usr/bin/adlock run --name m -- true\n* * * * * mallory /mnt/adlock run --name sleep-"
	site, moved := fmt.Sprintf(siteOf, ""), `mkdir -m 700 `+made+` && chown mallory `+made+`; `+fmt.Sprintf(siteOf, `HOME=/mnt\n`)
	for _, c := range []struct{ at, setUp, verb, err, out string }{
		{home, site, "status --all-users", dir + ": does not answer, and is left out\n", "second"},
		{home, site, "metrics --all-users", dir + ": does not answer, and is left out\n", "second"},
		{home, site, "init mallory", "mallory: does not answer\n", "status 69\n"},
		{home, site, "doctor | tail -n 1", leftOut, "ok   adlock.sh: "},
		{home, site, "check -u /etc/cron.d/site", leftOut, "status 0\n"},
		{home, fmt.Sprintf(siteOf, `SHELL=/usr/lib/adlock/shell\nADLOCK_SHELL=/mnt/mallory/sh\n`), "check -u /etc/cron.d/site", leftOut, ""},
		{home, site + `; PATH=$PATH:/mnt; printf 'PATH=/mnt/mallory\n* * * * * mallory adlock run --name m -- true\n' >/etc/cron.d/site`, "check -u /etc/cron.d/site", leftOut, ""},
		{home, site, "wrap -u </etc/cron.d/site", leftOut, wrapped},
		{made, moved, "status --all-users", made + ": does not answer, and is left out\n", "second"},
		{made, moved, "init mallory", "mallory: does not answer\n", ""},
		{made, moved, "check -u /etc/cron.d/site", leftOut, ""},
		{made, moved, "wrap -u /etc/cron.d/site", leftOut, ""},
		{made, moved, "doctor", leftOut, ""},
	} {
		t.Run(c.at+" "+c.verb, func(t *testing.T) {
			t.Parallel()
			r := unanswered(t, c.at, c.setUp, c.verb)
			all := strings.HasSuffix(c.verb, " --all-users")
			if !strings.Contains(r.Out, c.out) || !strings.Contains(r.Err, "adlock: "+c.err) || strings.Count(r.Err, "does not answer") != 1 ||
				strings.Contains(r.Out, "status 137") || all && !(strings.Contains(r.Out, "first") && strings.HasSuffix(r.Out, "status 69\n")) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func init() {
	if at := os.Getenv("NEVER_ANSWERS"); at != "" {
		fmt.Fprintln(os.Stderr, neverAnswer(at))
		os.Exit(1)
	}
}

// neverAnswer mounts a file system that any user may access (fuse(4)), and answers its first request (FUSE_INIT) only.
func neverAnswer(at string) error {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=3900003,group_id=65534,allow_other", fd)
	if err := unix.Mount("never", at, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	request := make([]byte, 1<<20)
	if _, err := unix.Read(fd, request); err != nil {
		return err
	}
	answer := make([]byte, 16+64) // fuse_out_header and fuse_init_out
	binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
	copy(answer[8:16], request[8:16]) // the number of the request
	for i, n := range []uint32{7, 31, 1 << 16} {
		binary.NativeEndian.PutUint32(answer[16+4*i:], n)
	}
	binary.NativeEndian.PutUint32(answer[36:], 1<<16) // max_write
	if _, err := unix.Write(fd, answer); err != nil {
		return err
	}
	if err := os.WriteFile("/mnt/ready/yes", nil, 0o600); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if _, err := unix.Read(fd, request); err != nil {
			return err
		}
	}
	return nil
}

func TestTheUnreadPartOfALargeRunlogIsReported(t *testing.T) {
	t.Parallel()
	r := onHost(t, `as one $a run --name old -- false; touch -d 2010-01-01 /mnt/one/.local/state/adlock/last.adlock.dax.run.old; as one sh -c 'cd $HOME/.local/state/adlock && i=0 && head -n 1 program.dax.runlog | sed "s/time=[^ ]*/time=2020-01-02T03:04:05.000000Z/" >line && while [ $i -lt 18 ]; do cat line line >more && mv more line && i=$((i+1)); done && cat line >>program.dax.runlog'
for v in "log -n 3" "report --since 1h" report log "status --failed --exit-code" status "status --atom first"; do $a $v --all-users >/dev/null; echo $?; done`)
	if r.Out != "0\n0\n69\n69\n69\n69\n0\n" || strings.Count(r.Err, "/mnt/one/.local/state/adlock: the runlog before ") != 4 {
		t.Errorf("%+v", r)
	}
}

func TestReadingPathsOfOneUserTakesABoundedTime(t *testing.T) {
	t.Parallel()
	need.Root(t)
	as := withRightsOf([]otherUser{{Name: "mallory", UID: 3900003, GID: 65534}})
	for name, want := range map[string]bool{"": true, "root": true, "mallory": true, "mallory:staff": true, "of-a-directory-service": false} {
		if got := as(name, func() bool { return true }); got != want {
			t.Errorf("files are looked at for %q: %t", name, got)
		}
	}
	asked := 0
	for range 40 {
		as("mallory", func() bool { asked++; time.Sleep(100 * time.Millisecond); return false })
	}
	if most := int(patience.Whole / (100 * time.Millisecond)); asked > most || silent[3900003] == nil {
		t.Errorf("asked %d times, %v", asked, silent[3900003])
	}
}

func TestThePauseOfTheHostDoesNotHideAnAtomsPause(t *testing.T) {
	t.Parallel()
	r := onHost(t, `$a pause --all --for 2h --why disk && as one $a pause --for 1h first && as one $a pause && as one $a resume first && as one $a pause --json`)
	lines := strings.Split(r.Out, "\n")
	if r.Status != 0 || len(lines) != 4 || !strings.HasPrefix(lines[0], "all jobs of this host: paused: for ") || !strings.HasPrefix(lines[1], "adlock.dax.run.first: paused: for ") || strings.Count(lines[2], "age_seconds") != 1 {
		t.Errorf("%+v", r)
	}
	has(t, r.Err, "adlock: resume: all jobs of this host stay paused: for ", "(disk)")
}

func TestMetricsAreWrittenDespiteUnreadableUserDirectories(t *testing.T) {
	t.Parallel()
	r := onHost(t, `as mallory ln -s /mnt/secret $d/program.dax.runlog; rm -r /mnt/two/.local; as two ln -s /mnt/one /mnt/two/.local
$a run --name own -- true; mkdir -m 0 /var/lib/adlock-3900009; chown 3900009 /var/lib/adlock-3900009; grep -v ^root: /etc/passwd >/mnt/users; echo ::3900009:65534::/:/bin/sh >>/mnt/users; cat /mnt/users >/etc/passwd; unset USER
$a metrics --all-users --output /mnt/adlock.prom && cat /mnt/adlock.prom; chmod 0 /mnt/one/.local/state/adlock
again() { $a metrics --all-users --output /mnt/adlock.prom; sed -n 's/^adlock_user_read{user="[o0].*"} 0/'$1' &/p; s/^adlock_denials_total{user="[o0].*",.*operand="[fo].*"/'$1' &/p' /mnt/adlock.prom; }
again then; mv /mnt/one /mnt/away; again without; mv /var/lib/adlock /mnt/own; again root`)
	r.Is(t, 0, "…", "…adlock: /var/lib/adlock: …\n")
	has(t, r.Out, `adlock_user_read{user="mallory"} 0`, `adlock_user_read{user="two"} 0`, `adlock_user_read{user="one"} 1`, `operand="first"`,
		`adlock_user_read{user="0"} 1`, `adlock_user_read{user="3900009"} 0`, `then adlock_user_read{user="one"} 0`, `then adlock_denials_total{user="one",`,
		`without adlock_user_read{user="one"} 0`, `without adlock_denials_total{user="one",`, `root adlock_user_read{user="0"} 0`, `root adlock_denials_total{user="0",`)
}

func TestMetricsCountTheEventsOfAnUnreadRunlogLater(t *testing.T) {
	t.Parallel()
	r := onHost(t, `$a run --name own -- true; cd /mnt; log=adlock/program.dax.runlog; f=/mnt/adlock.prom
sed -i 's/time=[^ ]*/time=2020-01-02T03:04:05.000000Z/' /var/lib/$log one/.local/state/$log; $a metrics --all-users -o $f; sed -i 's/^\(adlock_counted_until_timestamp_seconds\).*/\1 1500000000/' $f
for at in /var/lib one/.local/state; do mv $at/$log $at/log; mkdir $at/$log; done; $a metrics --all-users -o $f
for at in /var/lib one/.local/state; do rmdir $at/$log; mv $at/log $at/$log; done; $a metrics --all-users -o $f; grep -c '^adlock_runs_total{user="\(root\|one\)".*success"} 2$' $f`)
	r.Is(t, 0, "2\n", "adlock: /var/lib/adlock/program.dax.runlog: open: is a directory\n")
}

func TestAtomsOnlyInTheRunlogAreOmittedIfTheTimeIsUp(t *testing.T) {
	t.Setenv("ADLOCK_STORE", "etcd://h/p") // which does not list them either
	waits := past{}
	for _, ago := range []time.Duration{9 * time.Hour, 0} { // the first waiter is dead, and had the same pid
		waits.add(&runlog.Event{Kind: runlog.Wait, PID: os.Getpid(), Time: time.Now().Add(-ago), Wait: limit.Never})
	}
	for want, goesOn := range map[int]bool{0: false, 2: true} {
		a := account{alive: func() bool { return goesOn }}
		if rows := a.rowsOf(map[atom.Name]*past{"p.h.o.x": &waits, "p.h.o.y": &waits}, time.Now()); len(rows) != want || (a.omitted == 0) != goesOn {
			t.Errorf("%d rows, %d are left out, want %d", len(rows), a.omitted, want)
		}
	}
}
