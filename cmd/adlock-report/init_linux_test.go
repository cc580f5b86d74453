package main

import (
	"regexp"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// varLib makes an empty /var/lib and a home that is root's, for a script in which $a is an
// adlock that every user may run.
const varLib = `mount -t tmpfs -o mode=755 none /var/lib && mount -t tmpfs -o mode=755 none /mnt && cp "$0" "${0%/*}"/adlock-* /mnt || exit
a=/mnt/adlock; unset ADLOCK_DIR; export HOME=/mnt/home
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
`

func initialised(t *testing.T, p place, script string) helper.Result {
	t.Helper()
	return within(t, p, varLib+script).Run(t)
}

func TestInitMakesTheLockDirectoryOfAUser(t *testing.T) {
	p := newPlace(t)
	r := initialised(t, p, `nobody $a run --name n -- true; $a init nobody && $a init nobody 65534 && stat -c '%a %U %n' /var/lib/*
nobody $a run --name n -- echo ran; nobody $a run --name n --dry-run -- true; nobody $a doctor | grep 'lock directory'; $a init daemon && ls /var/lib`)
	const dir = "/var/lib/adlock-65534"
	const made = "nobody: " + dir + "\n"
	want := made + made + "65534: " + dir + "\n700 nobody " + dir + "\nran\nfree: completed 0s ago, IfElapsed is 0s, no ExpireAfter\nlock: " + dir + "/lock.adlock.dax.run.n\nok   lock directory: " + dir + "\ndaemon: /var/lib/adlock-1\nadlock-1\nadlock-65534\n"
	r.Out = regexp.MustCompile(`completed \d+s ago`).ReplaceAllString(r.Out, "completed 0s ago")
	r.Is(t, 0, want,
		"adlock: run n: not run: /mnt/home/.local/state/adlock: mkdir: permission denied (as root: adlock init nobody)\n")
}

func TestInitGoesOnAfterARefusedUser(t *testing.T) {
	initialised(t, newPlace(t), `$a init no-such nobody root daemon; s=$?; ls /var/lib; exit $s`).Is(t, 64,
		"nobody: /var/lib/adlock-65534\ndaemon: /var/lib/adlock-1\nadlock-1\nadlock-65534\n",
		"adlock: no-such: no such user in /etc/passwd\nadlock: root: needs no other lock directory than root's\n")
}

func TestInitRefusesRootAndUsersWithALockDirectory(t *testing.T) {
	p := newPlace(t)
	for script, want := range map[string]struct {
		status int
		says   string
	}{
		`mount -t tmpfs none /usr/sbin && mkdir -p /usr/sbin/.local/state/adlock && $a init daemon`: {73, "adlock: daemon: has a lock directory already: /usr/sbin/.local/state/adlock: "},
		`$a init root`:         {64, "adlock: root: needs no other lock directory than root's\n"},
		`$a init no-such`:      {69, "adlock: no-such: no such user in /etc/passwd\n"},
		`$a init`:              {64, "adlock: init: wants a USER\n"},
		`nobody $a init games`: {77, "adlock: init: makes directories of other users, and is for root\n"},
		`ln -s /mnt /var/lib/adlock-65534; $a init nobody`:                                                                          {73, "adlock: /var/lib/adlock-65534: is there, and is no directory of nobody: remove it, or give it to that user\n"},
		`mkdir -p /var/lib/adlock-65534/x; $a init nobody`:                                                                          {73, "adlock: /var/lib/adlock-65534: is there, and is no directory of nobody: remove it, or give it to that user\n"},
		`mkdir -m 775 /var/lib/adlock-65534; chown nobody /var/lib/adlock-65534; $a init nobody && nobody $a run --name n -- false`: {1, ""},
		`mkdir /var/lib/adlock-65534; $a init nobody && nobody $a run --name n -- false`:                                            {1, ""},
		`mkdir /var/lib/adlock-65534; nobody $a run --name n -- true`:                                                               {73, "(as root: adlock init nobody)\n"},
	} {
		if r := initialised(t, p, script); r.Status != want.status || !strings.Contains(r.Err, want.says) || want.says == "" && r.Err != "" {
			t.Errorf("%s: %+v", script, r)
		}
	}
}

func TestDoctorAndCheckNameCrontabUsersWithoutADirectory(t *testing.T) {
	p := newPlace(t)
	r := initialised(t, p, `cp -a /etc /mnt && mount --bind /mnt/etc /etc && rm -f /etc/debian_version && mount -t tmpfs none /etc/cron.d && mkdir -p /mnt/games/.local && chown -R games /mnt/games && sed -i 's|^games:.*|games:x:5:60::/mnt/games:/bin/sh|' /etc/passwd && echo '@daily daemon adlock' >/etc/cron.d/copy~ && cat >/etc/cron.d/site <<'END'
* * * * * nobody /usr/bin/adlock run --name n -- true
* * * * * nobody /usr/bin/adlock run --name m -- true
* * * * * daemon true
* * * * * root /usr/bin/adlock run --name n -- true
END
$a doctor | grep users; $a check /etc/cron.d/site; $a init nobody; $a doctor | grep users; $a check /etc/cron.d/site
(echo HOME=/mnt; echo '* * * * * games /usr/bin/adlock run --name n -- true') >/etc/cron.d/site; $a doctor | grep users; $a check /etc/cron.d/site
sed -i 's|/usr/bin/adlock.*|date|' /etc/cron.d/site; $a wrap -u /etc/cron.d/site >/dev/null; cd /mnt; for home in HOME=/ -uHOME; do env $home setpriv --reuid 5 --regid 60 --clear-groups $a run --name n -- true; done`)
	const found = ": a user without a lock directory: nobody can make none at home, and the job is never run; as root: adlock init nobody\n"
	want := "warn users: nobody has jobs under adlock in a crontab of the system, and can make no lock directory at home: they never run; as root: adlock init nobody\n" +
		"/etc/cron.d/site:1" + found + "/etc/cron.d/site:2" + found + "nobody: /var/lib/adlock-65534\n" + strings.ReplaceAll("warn users: games has jobs under adlock in a crontab of the system, and can make no lock directory at home: they never run; %\n"+
		"/etc/cron.d/site:1: a HOME that moves the locks: the locks of the jobs below are in /mnt/.local/state/adlock, and those of the same jobs by hand in /mnt/games/.local/state/adlock; leave HOME out, or say ADLOCK_DIR=/mnt/games/.local/state/adlock beside it\n"+
		"/etc/cron.d/site:2: a user without a lock directory: games can make none at home, and the job is never run; %\n", "%", "leave HOME out, or say ADLOCK_DIR= with the lock directory of games beside it")
	r.Is(t, 69, want, "…site:2: left as it is: user \"games\" cannot make a lock directory at home; leave HOME out, or say ADLOCK_DIR= with the lock directory of games beside it\n…"+
		"adlock: run n: not run: /.local/state/adlock: mkdir: permission denied (HOME is not that of games: set HOME=/mnt/games, or as root: adlock init games)\n"+
		"adlock: run n: not run: ADLOCK_DIR: is not set, and HOME is no absolute path (HOME is not that of games: set HOME=/mnt/games, or as root: adlock init games)\n")
}
