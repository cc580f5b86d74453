package lint

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/crontab"
	"adlock/lib/run"
	"adlock/test/support/must"
)

// program makes an empty program, which can be run.
func program(t *testing.T, dir, name string) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o755))
	must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
}

// checker is a Checker for a machine with a few programs, users and runs.
func checker(t *testing.T) *Checker {
	t.Helper()
	top := t.TempDir()
	usual, local := filepath.Join(top, "bin"), filepath.Join(top, "local")
	for _, name := range []string{"date", "flock", "sh", "gzip", "rsync", "make", "cd"} {
		program(t, usual, name)
	}
	for _, name := range []string{"adlock", "job", "date"} {
		program(t, local, name)
	}
	return &Checker{
		Options: run.Options(), Refusal: run.Refusal, LineRefusal: run.LineRefusal, Nearest: run.NearestSetting,
		Host: "dax", CronPath: usual, Elsewhere: []string{local, usual},
		IsUser:   func(name string) bool { return name == "root" || name == "root:wheel" },
		Unknown:  func(name string) bool { return name == "gone" },
		Homeless: func(user, home string) bool { return user == "www" && home != "/srv/www" },
		Dir: func(user, home string) string {
			switch user {
			case "joe":
				return config.DirOfHome(cmp.Or(home, "/home/joe"))
			case "root":
				return "/var/lib/adlock"
			}
			return ""
		},
		Stranger: func(dir string) string {
			if strings.HasPrefix(dir, "/srv/joe") || dir == "/home/joe" {
				return "joe"
			}
			return ""
		},
		IsNetwork: func(_, path string) bool { return strings.HasPrefix(path, "/net/") },
		Missing: func(_, path string) bool {
			_, err := os.Stat(path)
			return strings.HasPrefix(path, "/nowhere/") || err != nil && (strings.HasPrefix(path, top) || strings.HasPrefix(path, "/bin/root"))
		},
		Longest: func(_ string, a atom.Atom) time.Duration {
			switch a {
			case atom.Named("slow", "dax"):
				return 90 * time.Minute
			}
			return 0
		},
	}
}

// alone is a checker that has checked nothing yet.
func alone(c *Checker) *Checker {
	fresh := *c
	fresh.locked, fresh.used, fresh.twins = nil, nil, nil
	return &fresh
}

// finds tests that a text has exactly these mistakes, each as "LINE: WHAT".
func finds(t *testing.T, c *Checker, text string, want ...string) {
	t.Helper()
	found, err := alone(c).Check("crontab", text)
	if err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
	var got []string
	for _, m := range found {
		got = append(got, string(rune('0'+m.Line))+": "+m.What)
		if m.Reason == "" || m.Cure == "" {
			t.Errorf("no reason or no cure: %+v", m)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q in:\n%s", got, want, text)
	}
}

// right tests that texts have no mistakes.
func right(t *testing.T, c *Checker, texts ...string) {
	t.Helper()
	for _, text := range texts {
		finds(t, c, text)
	}
}

// pair has texts with one kind of mistake, and similar texts without it.
type pair struct {
	what  string
	wrong []string
	right []string
}

func TestALockIsFoundBehindWrappersAndOptions(t *testing.T) {
	c := &Checker{Options: run.Options(), IsUser: func(string) bool { return false }} // with little of a machine
	for _, command := range []string{
		"nice -n 10 adlock run --name n$$ -- job", "timeout 5m flock -n /tmp/x.$$ job", "sudo -u www-data adlock run --name n$$ job",
		"env A=b C=d adlock run --whole-job --name n$$ job", "exec chronic /usr/bin/adlock run -E 5 --name n$$ job", "nohup adlock run --quiet-ok --name=\"n$$\" job",
		"adlock run \"--name=n$$\" job", "adlock run --if-elapsed=5m --name 'n'$$ job", "adlock run \"--if-elapsed=5m\" --name n$$ job",
		"flock -nE 0 /tmp/x.$$ job", "flock --nonblock --timeout 5 /tmp/x.$$ -c job", "flock -w 5 /tmp/x.$$ --command job", "flock -xw5 /tmp/x.$$ job",
	} {
		finds(t, c, "* * * * * "+command+"\n", "1: a name that changes")
	}
	for _, command := range []string{
		"adlock", "adlock run", "adlock run --name", "adlock run --name n", "adlock run --", "adlock run -E", "adlock run --name=",
		"adlock status n$$", "adlock run ''", "adlock $$", "$$ adlock", "exec", "exec 3>&-", "nice", "nice -n", "nice -n 10", "sudo -u", "env", "env A=b", "timeout 5",
		"flock", "flock -n", "flock -w", "flock -w 5", "flock /tmp/x.$$", "flock -u 9", "''", "\"$@\"", "A=$$", "$(adlock)",
	} {
		finds(t, c, "* * * * * A=b "+command+"\n")
	}
}

// crontabs are commands of a crontab line.
var crontabs = []pair{
	{"a variable that sets nothing", []string{
		"ADLOCK_EXPIREAFTER=90m\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"* * * * *  ADLOCK_EXPIREAFTER=90m /bin/adlock run --name n -- /bin/job",
		"ADLOCK_EXPIRE_AFTR=90m\n* * * * *  /bin/job",
	}, []string{
		"ADLOCK_EXPIRE_AFTER=90m\nADLOCK_HOOK=/bin/true\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_SHELL=/bin/bash\nADLOCK_DIR=/srv/locks\n* * * * *  /bin/job",
		"ADLOCK_AGENT=0\nADLOCK_BIN=/opt/adlock\nADLOCK_FTP_PASSWORD_FILE=/root/p\nADLOCK_ETCD_PASSWORD_FILE=/root/p\n* * * * *  /bin/job",
		"* * * * *  ADLOCK_EXPIREAFTER=90m /bin/job",
	}},
	{"a setting that is refused", []string{
		"SHELL=/usr/lib/adlock/shell\nADLOCK_SHELL=bash\n* * * * *  /bin/job",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_SHELL=/opt/lib/adlock/shell\n* * * * *  /bin/job",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_IF_ELAPSED=soon\n* * * * *  /bin/job",
	}, []string{
		"SHELL=/usr/lib/adlock/shell\nADLOCK_IF_ELAPSED=soon\n* * * * *  : ADLOCK_IF_ELAPSED=5s ; /bin/job",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_EXPIRE_AFTER=auto\n@daily  : n ADLOCK_WAIT=forever ADLOCK_HOOK= ; /bin/job",
	}},
	{"enforced without a limit", []string{
		"SHELL=/usr/lib/adlock/shell\nADLOCK_ENFORCE=yes\n* * * * *  /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_ENFORCE=1 ADLOCK_EXPIRE_AFTER=never ; /bin/job",
		"* * * * *  ADLOCK_ENFORCE=1 /bin/adlock run --name n -- /bin/job",
	}, []string{
		"SHELL=/usr/lib/adlock/shell\nADLOCK_ENFORCE=1\n* * * * *  /bin/job\n* * * * *  : n ADLOCK_EXPIRE_AFTER=90m ; /bin/job2",
		"* * * * *  ADLOCK_ENFORCE=1 /bin/adlock run --expire-after $LIMIT --name n -- /bin/job",
	}},
	{"a setting without the SHELL", []string{
		"* * * * *  : n ADLOCK_EXPIRE_AFTER=90m && /bin/job",
		"ADLOCK_SHELL=/bin/bash\n* * * * *  /bin/job",
		"SHELL=/bin/sh\nADLOCK_SHELL=/bin/bash\n* * * * *  /bin/job\n* * * * *  /bin/job2",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /bin/job\nSHELL=/bin/sh\n* * * * *  : n ADLOCK_EXPIRE_AFTER=90m ; /bin/job",
	}, []string{
		"* * * * *  : n ; /bin/job", // a comment to any other shell
		"ADLOCK_SHELL=/bin/bash\nSHELL=/usr/lib/adlock/shell\n* * * * *  /bin/job",
	}},
	{"a verb that is none", []string{
		"* * * * *  /bin/adlock runn --name n -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /bin/adlock rnu --name n -- /bin/job",
	}, []string{"* * * * *  /bin/adlock $verb --name n -- /bin/job", "* * * * *  /bin/adlock"}},
	{"an option that is refused", []string{
		"* * * * *  runuser -u www-data -- /bin/adlock run --nmae n -- /bin/job && /bin/other",
		"* * * * *  ADLOCK_ENFORCE=1 ADLOCK_REPLACE=1 /bin/adlock run --name n -- /bin/job",
		"ADLOCK_SLOTS=3\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"ADLOCK_LOG_MAX=1M\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"* * * * *  /bin/adlock run --name n --host -- /bin/job",
		"ADLOCK_SYSLOG=maybe\n* * * * *  /bin/adlock run --name \"$n\" -- /bin/job >/dev/null 2>&1",
	}, []string{
		"ADLOCK_WAIT_ELAPSED=1\n* * * * *  /bin/adlock run --name n $more -- /bin/job",
		"* * * * *  ADLOCK_PROGRAM=\"$p\" /bin/adlock run --name n --slots 3 -- /bin/job",
		"* * * * *  /bin/adlock run --name n --slots 3 $more -- /bin/job",
	}},
	{"an assignment as the command", []string{
		"* * * * *  /bin/adlock run --name n ADLOCK_X=5m /bin/job",
		"* * * * *  flock -n /run/x A='b' /bin/job",
	}, []string{
		"* * * * *  A=b /bin/adlock run --name n -- env A=b /bin/job",
		"* * * * *  flock -n /run/x -c 'A=b /bin/job'",
	}},
	{"a dry run", []string{
		"* * * * *  /bin/adlock run --dry-run --name n -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_DRY_RUN=1 ; /bin/job",
	}, []string{"ADLOCK_DRY_RUN=0\n* * * * *  /bin/adlock run --name n -- /bin/job"}},
	{"SHELL set twice", []string{
		"SHELL=/usr/lib/adlock/shell\nPATH=/bin\nSHELL=/bin/bash\n* * * * *  /bin/job",
		"SHELL=/usr/lib/adlock/shell\n# as it was\nSHELL=/bin/sh\n",
	}, []string{
		"SHELL=/usr/lib/adlock/shell\nADLOCK_SHELL=/bin/bash\n* * * * *  /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /bin/job\nSHELL=/bin/bash\n* * * * *  /bin/job",
	}},
	{"a setting too late", []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  ADLOCK_EXPIRE_AFTER=90m /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  export ADLOCK_EXPIRE_AFTER=90m; /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  env ADLOCK_EXPIRE_AFTER=90m /bin/job",
	}, []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  ADLOCK_DIR=/srv/locks ADLOCK_HOOK=/bin/tell /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  ADLOCK_EXPIRE_AFTER=90m adlock run --name n -- /bin/job # adlock: ignore",
	}},
	{"a name that is none", []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : my backup ; /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  :backup ADLOCK_EXPIRE_AFTER=90m ; /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n-$$ ; /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n>/run/f 2>&1; /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n-$(hostname) && /bin/job",
	}, []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : >/run/f ; : 2>&1 ; : $(id) ; /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : ${HOME:=/root}; /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /bin/job; : done ; /bin/job",
	}},
	{"a limit without a unit", []string{
		"SHELL=/usr/lib/adlock/shell\nADLOCK_IF_ELAPSED=3600\n* * * * *  : n ADLOCK_IF_ELAPSED=5m ; /bin/job",
		"* * * * *  ADLOCK_EXPIRE_AFTER=7200 /bin/adlock run --name n -- /bin/job",
	}, []string{
		"ADLOCK_EXPIRE_AFTER=1440\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_EXPIRE_AFTER=never ADLOCK_SLOTS=999 ADLOCK_PROGRAM=p ; /bin/job",
	}},
	{"one lock for two jobs", []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ; /bin/job a\n* * * * *  : n ; /bin/job b",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /bin/job\nPATH=/opt/bin\n@daily  /bin/job",
		"* * * * *  flock -n /run/x /bin/job a\n* * * * *  flock -n /run//x /bin/job b",
		"@daily  flock /run/x /bin/job a\n* * * * *  cd /srv; flock -n /run/x -c '/bin/job b'",
		"* * * * *  flock -n x /bin/job a\n* * * * *  flock -n ./x /bin/job b",
		"* * * * *  cd /srv && flock -n \"$HOME/x\" /bin/job a\n@daily  cd /srv && flock -w 9 ${HOME}//x /bin/job b",
		"* * * * *  cd /a && /bin/adlock run --name make -- make\n* * * * *  cd /b && /bin/adlock run --name make -- make",
		"* * * * *  /bin/adlock run -- /bin/cat%a\n* * * * *  /bin/adlock run -- /bin/cat%b",
		"SHELL=/usr/lib/adlock/shell\nHOME=/\n* * * * *  root  : n ; /bin/job a\nHOME=/tmp\n* * * * *  root  : n ; /bin/job b",
	}, []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /bin/job\nMAILTO=root\nADLOCK_EXPIRE_AFTER=1h\nCRON_TZ=UTC\n@hourly  /bin/job",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_WAIT=5m\n* * * * *  : n ; /bin/job a\n* * * * *  : n ; /bin/job b",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_SHARED=1 ; /bin/job a\n* * * * *  : n ADLOCK_SHARED=1 ; /bin/job b",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  root  : n ; /bin/job a\n* * * * *  www  : n ADLOCK_DIR=/srv ; /bin/job b\n* * * * *  root  : m ; /bin/job b",
		"HOME=/a\n* * * * *  /bin/adlock run --name n -- /bin/job a\nHOME=/b\n* * * * *  /bin/adlock run --name n -- /bin/job b",
		"@hourly  flock /run/x /bin/job a\n* * * * *  flock -w 50 /run/x /bin/job b",
		"* * * * *  flock -ns /run/x /bin/job a\n* * * * *  flock -n -s /run/x /bin/job b",
		"* * * * *  cd /a; flock -n x /bin/job a\n* * * * *  cd /b; flock -n x /bin/job b\nHOME=/a\n* * * * *  cd /a; flock -n x /bin/job b",
		"* * * * *  root  flock -n x /bin/job a\n* * * * *  www  flock -n x /bin/job b\n* * * * *  root  env -C /a flock -n x /bin/job b\n* * * * *  root  flock -n $HOME/$X /bin/job a\n* * * * *  root  flock -n $HOME/$X /bin/job b",
	}},
	{"a lock directory of two users", []string{
		"SHELL=/usr/lib/adlock/shell\nADLOCK_DIR=/srv/www/locks\n* * * * *  www  /bin/a\n* * * * *  root  /bin/b\n* * * * *  root  /bin/c",
		"* * * * *  root  /bin/c\n* * * * *  root  ADLOCK_DIR=/srv /bin/adlock run --name a -- /bin/a\n* * * * *  www  ADLOCK_DIR=/srv/ /bin/adlock run --name b -- /bin/a",
	}, []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  www  : a ADLOCK_DIR=/srv/www/locks ; /bin/a\n* * * * *  root  /bin/b\n* * * * *  root  /bin/c",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_DIR=/srv/www/locks\n* * * * *  www  /bin/a\n* * * * *  www:www  /bin/b\n* * * * *  root  flock -n /run/x /bin/c",
	}},
	{"a job in the background", []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ; nohup /bin/job >/dev/null 2>&1 &",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_WHOLE_JOB=0 ; (/bin/job &)",
		"* * * * *  flock -n /run/x screen -dmS x /bin/job",
		"* * * * *  flock -no /run/x -c '/bin/job &'",
		"* * * * *  flock -n --close /run/x setsid -f /bin/job",
	}, []string{
		"* * * * *  screen -dmS x /bin/job",
		"* * * * *  /bin/adlock run --name n --whole-job -- sh -c '/bin/job &'",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_WHOLE_JOB=1 ; /bin/job &",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /bin/a & /bin/b & wait",
		// What flock runs inherits the lock.
		"* * * * *  flock -n /run/x /bin/job &",
		"* * * * *  (flock -n 9 || exit 1; /bin/job &) 9>/run/x",
	}},
	{"a setting that cron does not expand", []string{
		"ADLOCK_DIR=~/locks\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_LOGDIR=\"${HOME}/log\"\n* * * * *  /bin/job",
		"ADLOCK_DIR=/srv/$(id -u)\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"ADLOCK_DIR=/srv/`id -u`\n* * * * *  /bin/adlock run --name n -- /bin/job",
	}, []string{
		"ADLOCK_DIR=/srv/a~b/5$\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"ADLOCK_HOOK=$HOME/bin/tell\n* * * * *  /bin/adlock run --name n -- /bin/job",
	}},
	{"a lock directory that does not last", []string{
		"ADLOCK_DIR=/run/user/1000/locks\n* * * * *  /bin/adlock run --name n -- /bin/job\n* * * * *  /bin/adlock run --name m -- /bin/job",
		"* * * * *  /bin/adlock run --store /var/tmp/l --name n -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_DIR=/dev/shm/l ; /bin/job",
	}, []string{
		"ADLOCK_DIR=/srv/tmp\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"ADLOCK_DIR=/running\n* * * * *  /bin/adlock run --name n -- /bin/job",
	}},
	{"a lock file that does not last", []string{
		"* * * * *  /bin/adlock run --name n --shared --flock \"/run/user/1000/f\" -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_FLOCK=/tmp/f ; /bin/job",
	}, []string{
		"* * * * *  /bin/adlock run --name n --flock /var/lock/f -- /bin/job\n* * * * *  /bin/adlock run --name m --flock /var/lock/f -- /bin/other",
	}},
	{"a lock file of the network", []string{
		"* * * * *  /bin/adlock run --name n --flock /net/f -- /bin/job",
		"ADLOCK_FLOCK=/net/f\n* * * * *  /bin/adlock run --name n -- /bin/job",
	}, []string{"* * * * *  /bin/adlock run --name n --shared --flock /net/f -- /bin/job"}},
	{"told to nobody", []string{
		"* * * * *  /bin/adlock run --name n -- /bin/job >/dev/null 2>&1",
		"* * * * *  cd /srv && /bin/adlock run --name n -- /bin/job 2>&- | logger",
		"* * * * *  /bin/adlock run --name n -- /bin/job &>/dev/null",
		"* * * * *  /bin/adlock run --name n --hook '' -- /bin/job 2>/dev/null",
		"MAILTO=root\nADLOCK_SYSLOG=0\nMAILTO=''\n* * * * *  /bin/adlock run --name n -- /bin/job >/tmp/log",
	}, []string{
		"* * * * *  /bin/adlock run --name n -- /bin/job 2>&1 >/dev/null",
		"* * * * *  /bin/adlock run --name n -- /bin/job 2>&1 | logger -t job 2>/dev/null",
		"ADLOCK_HOOK=/bin/tell\nMAILTO=\"\"\n* * * * *  /bin/adlock run --name n -- /bin/job",
		"ADLOCK_SYSLOG=1\nMAILTO=\"\"\n* * * * *  /bin/adlock run --name n -- /bin/job 2>/dev/null",
		"MAILTO=\"\"\n* * * * *  /bin/adlock run --name n -- /bin/job >>/tmp/log 2>&1",
		"MAILTO=\"\"\n* * * * *  systemd-cat /bin/adlock run --name n -- /bin/job",
	}},
	{"a lock within itself", []string{
		"* * * * *  flock -n /run/x sh -c 'cd /srv && flock -n /run/x /bin/job'",
		"* * * * *  /bin/adlock run --name n -- nice /bin/adlock run --name=n -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ; cd /srv; /bin/adlock run --name n -- /bin/job",
		"* * * * *  /bin/adlock run --name n --flock /run/x -- /bin/adlock run --name m --flock /run/x --shared -- /bin/job",
	}, []string{
		"* * * * *  /bin/adlock run --name n --shared --flock /run/x -- flock -ns /run/x /bin/job",
		"* * * * *  /bin/adlock run --name n --flock \"$F\" -- flock -n \"$F\" /bin/job",
		"* * * * *  flock -n x sh -c 'cd /srv && flock -n x /bin/job'",
		"* * * * *  /bin/adlock run --name n -- /bin/adlock run --name n --program p -- /bin/job",
		"* * * * *  /bin/adlock run --name n -- sh -c 'ADLOCK_DIR=/srv/l /bin/adlock run --name n -- /bin/job'",
		"* * * * *  /bin/adlock run --name n -- /bin/a && /bin/adlock run --name n -- /bin/b",
	}},
	{"a sleep under the lock", []string{
		"SHELL=/usr/lib/adlock/shell\n*/5 * * * *  : n ; sleep 30 && /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  ADLOCK_X=1; sleep 30; /bin/job # adlock: not the first\n*/5 * * * *  /bin/sleep $((RANDOM \\% 60)); /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  sleep ${RANDOM:0:2}; /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  sleep $(shuf -i 1-50 -n 1); /bin/job",
		"* * * * *  flock -n /run/x -c 'sleep 30; /bin/job'",
	}, []string{
		"* * * * *  sleep $((RANDOM \\% 60)); flock -n /run/x /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  for i in 1 2; do /bin/job; sleep 20; done",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_WAIT=5m ; sleep 30; /bin/job",
	}},
	{"one job with two locks", []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : a ; cd /srv && /bin/job\n* * * * *  : b ; sleep 30 && cd /srv && /bin/job",
		"* * * * *  /bin/adlock run --name a -- /bin/job\n* * * * *  /bin/adlock run --name b -- /bin/sh -c 'sleep 30; /bin/job'",
	}, []string{
		"* * * * *  /bin/adlock run -- /bin/job\n* * * * *  sleep 30; /bin/adlock run -- /bin/job",
		"* * * * *  flock -n /run/x /bin/job\n* * * * *  sleep 30; flock -n /run/x /bin/job",
	}},
	{"waiters that pile up", []string{
		"* * * * *  flock /run/x /bin/job",
		"* * * * *  ( flock 9; /bin/job ) 9>/run/x",
		"* * * * *  setlock /run/x /bin/job",
		"* * * * *  lockf -k /run/x /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ADLOCK_WAIT=forever ; /bin/job",
	}, []string{
		"* * * * *  flock -w 50 /run/x /bin/job",
		"* * * * *  flock -s /run/x /bin/job",
		"* * * * *  setlock -n /run/x /bin/job",
		"* * * * *  lockf -st 0 /run/x /bin/job",
		"* * * * *  timeout 50 flock /run/x /bin/job",
		"@reboot  flock /run/x /bin/job",
		"* * * * *  /bin/adlock run --name n --wait forever --expire-after 50s -- /bin/job",
	}},
	{"an interval as long as the period", []string{
		"*/10 * * * *  /bin/adlock run --name n --if-elapsed 10m -- /bin/job",
		"@hourly  /bin/adlock run --name n --if-elapsed 60m -- /bin/job",
	}, []string{
		"*/10 * * * *  /bin/adlock run --name n --if-elapsed 10m --from-start -- /bin/job",
		"ADLOCK_FROM_START=1\n0 * * * *  /bin/adlock run --name n --if-elapsed 1h -- /bin/job",
	}},
	{"a store without a host", []string{
		"* * * * *  /bin/adlock run --name n --store etcd://a:2379/prod -- /bin/job",
		"ADLOCK_STORE=ftp://u@h/d\n* * * * *  /bin/adlock run --name n --once-per 1m -- /bin/job",
	}, []string{
		"* * * * *  /bin/adlock run --name n --store /srv/locks -- /bin/job",
		"ADLOCK_STORE=ftp://u@h/d\n* * * * *  ADLOCK_HOST=cluster /bin/adlock run --name n -- /bin/job",
	}},
	{"a command of the shell's own", []string{
		"* * * * *  /bin/adlock run --name n -- umask 077",
		"* * * * *  /bin/flock -n /run/x nice ulimit -n 5",
	}, []string{
		"* * * * *  /bin/adlock run --name n -- cd /srv", // there is such a program
		"* * * * *  /bin/adlock run --name n -- sh -c '. /etc/job.conf'",
	}},
	{"note", []string{
		"0 */6 * * *  /bin/adlock run --name n --expire-after 90m -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\n@daily  : n ADLOCK_EXPIRE_AFTER=90m ; /bin/job",
	}, []string{
		"0 */5 * * *  /bin/adlock run --name n --expire-after 90m -- /bin/job", // from 20:00 to midnight
		"@daily  /bin/adlock run --name n --expire-after 90m --enforce -- /bin/job",
		"@reboot  /bin/adlock run --name n --expire-after 90m -- /bin/job",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_ENFORCE=1\n@daily  : n ADLOCK_EXPIRE_AFTER=90m ; /bin/job",
	}},
	{"a command cut at %", []string{
		`* * * * *  /bin/adlock run --name n -- sh -c "date +%F"`,
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ; mkdir /srv/`date +%F`",
	}, []string{
		`* * * * *  mail -s "It's 10pm" joe%Joe,%%Where are your "kids?%`,
		`* * * * *  /bin/date "+\%F`,
		"SHELL=/usr/bin/zsh\n* * * * *  if [[ -t 0 ]] { /bin/job }%F",
		"SHELL=/usr/lib/adlock/shell\nADLOCK_SHELL=/usr/bin/fish\n* * * * *  if true; /bin/job; end%F",
	}},
	{"a carriage return", []string{
		"# jobs\r\n* * * * *  /bin/job\r\n* * * * *  /bin/job\r\n# the end",
		"* * * * *  /bin/job\nA=b\r\n \r\n",
		"* * * * *  /bin/job # adlock: ignore\r\n* * * * *  /bin/job\r\n",
	}, []string{"# a word\r\nA=b\r\n* * * * *  mail joe%Hello\r"}},
	{"a SHELL that is not there", []string{
		"SHELL = '/nowhere/bash'\n* * * * *  /bin/job\n* * * * *  /bin/job",
		"ADLOCK_SHELL=/nowhere/bash\nSHELL=/usr/lib/adlock/shell\n* * * * *  : n ; /bin/job",
	}, []string{
		"SHELL=/nowhere/bash\nSHELL=/bin/bash\n* * * * *  /bin/job",
		"SHELL=/nowhere/lib/adlock/shell\n* * * * *  /bin/job", // another machine's, as far as is known
	}},
	{"not on cron's PATH", []string{
		"* * * * *  adlock run --name n -- /bin/job",
		"PATH=/nowhere\n* * * * *  nice adlock run --name n -- /bin/job",
		"* * * * *  /bin/adlock run --name a -- adlock run --name b -- /bin/job",
		"* * * * *  flock -n /run/x nice adlock run --name n -- /bin/job",
	}, []string{
		"* * * * *  command -v adlock >/dev/null && adlock run --name n -- /bin/job",
		"* * * * *  PATH=/usr/local/bin:$PATH; adlock run --name n -- /bin/job",
		"SHELL=/bin/bash\nBASH_ENV=/etc/profile\n* * * * *  adlock run --name n -- /bin/job",
		"* * * * *  job",
	}},
	{"only the first is locked", []string{
		"* * * * *  cd /srv && flock -n /run/x -c '/bin/a' && /bin/b -c", "* * * * *  flock -n /run/x /bin/a; /bin/b # adlock ignored",
		"* * * * *  /bin/adlock run --name n -- /bin/a; cd /srv",
		"* * * * *  /bin/adlock run --name n -- /bin/a >/tmp/x | /bin/b",
	}, []string{
		"* * * * *  flock -n /run/x /bin/a || /bin/b", "* * * * *  flock -n /run/x /bin/a; /bin/b # adlock: ignore",
		"* * * * *  flock -n /run/x /bin/a && touch /tmp/done",
		"* * * * *  flock -n /run/x /bin/a 2>&1 | logger -t a",
		"* * * * *  /bin/adlock run --name n -- /bin/a; exit 0",
		"* * * * *  /bin/adlock run --name n -- sh -c '/bin/a | gzip >/tmp/x'",
	}},
	{"a lock without a name", []string{
		"* * * * *  /bin/adlock run --if-elapsed 5m ./job",
		"* * * * *  cd /srv && /bin/adlock run sh -c 'a; b'",
	}, []string{"* * * * *  /bin/adlock run --name n -- make", "* * * * *  ADLOCK_NAME=n /bin/adlock run make"}},
	{"a name that changes", []string{
		"* * * * *  flock -n /run/x.$$ /bin/job",
		`* * * * *  /bin/adlock run --name a --flock /srv/$$ -- /bin/job`,
		`* * * * *  /bin/adlock run -- /bin/job $(date +\%F)`,
		"SHELL=/usr/lib/adlock/shell\n* * * * *  cd /srv/app/releases/20261120100000 && /bin/job",
		"* * * * *  /bin/adlock run -- /srv/app/releases/v1-20261120/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  nice /srv/app-2026-11-20/bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  cd /srv/app_20261120T1000 && /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /opt/build-4711/bin/job >/dev/null",
		(&crontab.Wrapper{Adlock: "/usr/bin/adlock"}).Wrap(crontab.Read("* * * * *  cd /srv/app/releases/20261120100000 && /bin/job", false)).Text,
	}, []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : n ; cd /srv/app/releases/20261120100000 && /bin/job",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  rsync -a /srv/archive/2019-01-01/ host: >>/var/log/20261120/x",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  cd /srv/archive-2019 && /usr/lib/postgresql/15/bin/vacuumdb -a",
		"SHELL=/usr/lib/adlock/shell\n* * * * *  /opt/app-20.10.1/rebuild1/job; cd /srv/120261120",
	}},
	{"ExpireAfter below the runtime", []string{
		"SHELL=/usr/lib/adlock/shell\n* * * * *  : slow ADLOCK_EXPIRE_AFTER=1h ; /bin/job",
		"* * * * *  /bin/adlock run --name slow --expire-after 1h -- /bin/job",
	}, []string{"ADLOCK_EXPIRE_AFTER=1h\n* * * * *  /bin/adlock run --name slow --expire-after 3h -- /bin/job"}},
}

func TestEachMistakeIsFoundAndSimilarCorrectLinesAreNot(t *testing.T) {
	c := checker(t)
	c.Elsewhere = append(c.Elsewhere, "/nowhere")
	for _, p := range crontabs {
		for _, text := range p.wrong {
			for _, text := range []string{text + "\n", text, strings.ReplaceAll(text+"\n", "\n", "\r\n"), "# a word\n\n" + text + "\n# the end\n"} {
				found, err := alone(c).Check("crontab", text)
				found = slices.DeleteFunc(found, func(m Mistake) bool {
					return m.What != p.what && (m.What == "a line that cron refuses" || m.What == "a carriage return")
				})
				if err != nil || len(found) != 1 || found[0].What != p.what {
					t.Errorf("%+v, %v, want one %q in:\n%q", found, err, p.what, text)
				}
			}
		}
		for _, text := range p.right {
			finds(t, c, text+"\n")
		}
	}
}

func TestALineThatCronRefusesIsFound(t *testing.T) {
	const job, refused = "* * * * * /bin/job\n", "a line that cron refuses"
	for text, want := range map[string][]string{
		"@every_5m /bin/job\n":                                  {"1: " + refused},
		job + "0 22-4 * * * /bin/job\n" + "fi\n" + job + job:    {"2: " + refused, "3: " + refused},
		"* * * * * /bin/job \\\n  -a \\\n" + job:                {"2: " + refused},
		"* * * * * /bin/job a \\\\\n" + job:                     nil,
		job + "* * * * * /bin/job":                              {"2: " + refused},
		job + "# the end":                                       nil,
		"* * * * * /bin/job " + strings.Repeat("x", 989) + "\n": {"1: " + refused},
		"* * * * * /bin/job " + strings.Repeat("x", 988) + "\n": nil,
		"* * * * * /bin/job%" + strings.Repeat("x", 990) + "\n": {"1: " + refused},
	} {
		finds(t, checker(t), text, want...)
	}
}

// between checks some crontabs in their order, each a path and a text, and returns the findings in the last one.
func between(t *testing.T, texts ...[2]string) (found []Mistake) {
	t.Helper()
	c := checker(t)
	for _, text := range texts {
		found = must.Get(c.Check(text[0], text[1]))(t)
	}
	return found
}

func TestAMistakeIsReportedWithItsReasonAndItsCure(t *testing.T) {
	const guard = "SHELL=/usr/lib/adlock/shell\n"
	const apart = "give each a name of its own (: NAME ; or --name), or have both wait (--wait, ADLOCK_WAIT)"
	for _, c := range []struct{ text, reason, cure string }{
		{"0 22-4 * * * /bin/job\n",
			`not understood as the hour of a schedule: "22-4", as a range goes up: 22-23,0-4, ` +
				"and Debian's cron then runs nothing of the crontab, or never this line", "write it as in crontab(5)"},
		{"ADLOCK_EXPIRE_AFTER=5400\n", "5400 is in minutes: 3d18h", "say 1h30m, or 3d18h if that is meant"},
		{guard + "* * * * * /bin/cat%a\n* * * * * /bin/cat%b\n",
			"line 2 has it too, for the same text with other input: while one runs the other is skipped", apart},
		{guard + "A=1\n* * * * * /bin/job\nA=2\n* * * * * /bin/job\n",
			"line 3 has it too, for the same text below other variables: while one runs the other is skipped", apart},
		{"@daily /bin/adlock run --name n --expire-after 90m -- /bin/job\n",
			"ends only at the next start, in 1d", "ADLOCK_ENFORCE=1 ends it after 1h30m"},
	} {
		found := between(t, [2]string{"/var/spool/cron/joe", c.text})
		isNote := c.text[0] == '@' // the last one
		if len(found) != 1 || found[0].Reason != c.reason || found[0].Cure != c.cure || found[0].IsNote() != isNote {
			t.Errorf("%+v, want %s; %s", found, c.reason, c.cure)
		}
	}
}

func TestALockOrDirectoryThatTwoCrontabsShareIsFound(t *testing.T) {
	const guard = "SHELL=/usr/lib/adlock/shell\n"
	const locks = guard + "ADLOCK_DIR=/srv/locks\n"
	user := [2]string{"/var/spool/cron/crontabs/root", guard + "* * * * * : backup ; /bin/a\n"}
	other := [2]string{"/var/spool/cron/crontabs/mail", guard + "* * * * * : backup ; /bin/b\n"}
	system := [2]string{"/etc/cron.d/backup", "#\n* * * * * root /bin/adlock run --name backup -- /bin/b\n"}
	for reason, texts := range map[string][][2]string{
		"/var/spool/cron/crontabs/root:2 has it too, for another job: while one runs the other is skipped": {user, other, system},
		"/srv/locks is www's too, by /etc/cron.d/a:3: it belongs to one of them, and the other's jobs are never run": {
			{"/etc/cron.d/a", locks + "* * * * * www /bin/job\n"}, {"/var/spool/cron/root", locks + "* * * * * /bin/job\n"}},
	} {
		if found := between(t, texts...); len(found) != 1 || found[0].Reason != reason {
			t.Errorf("%+v, want %s", found, reason)
		}
	}
	for claim, texts := range map[string][][2]string{
		"of two users": {user, other}, "of two that are not known": {{"a", user[1]}, {"b", other[1]}},
		"the same job": {user, {"/etc/crontab", guard + "@daily root : backup ; /bin/a\n"}},
	} {
		if found := between(t, texts...); len(found) > 0 {
			t.Errorf("%s: %+v", claim, found)
		}
	}
}

func TestAUserColumnIsExpectedOnlyInTheSystemsCrontabs(t *testing.T) {
	const line, wrong = "* * * * * /bin/flock -n /run/x /bin/a; /bin/b\n", "only the first is locked"
	for path, want := range map[string]string{
		"/etc/crontab": "a line that cron refuses", "/etc/cron.d/x": "a line that cron refuses", "/var/spool/cron/root": wrong, "/var/spool/cron/tabs/root": wrong, "crontab": wrong,
	} {
		if found := between(t, [2]string{path, line}); len(found) != 1 || found[0].What != want {
			t.Errorf("%s: %+v, want %s", path, found, want)
		}
	}
	gone := [2]string{"/etc/cron.d/x", "* * * * * root /bin/a\n* * * * * gone /bin/a\n"}
	if found := between(t, gone); len(found) != 1 || found[0].Line != 2 || !strings.HasPrefix(found[0].Reason, "no such user: gone, and Debian's cron") {
		t.Errorf("%+v", found)
	}
}

func TestLinesOfASpoolAreNumberedAsCrontabListsThem(t *testing.T) {
	const head = "# DO NOT EDIT THIS FILE - edit the master and reinstall.\n# (/tmp/x installed on Mon)\n# (Cron version -- $Id$)\n"
	const lines = "# mine\n* * * * * /bin/flock -n /run/x /bin/a; /bin/b\n"
	for path, want := range map[string]int{"/var/spool/cron/crontabs/joe": 2, "copy": 5} {
		if found := between(t, [2]string{path, head + lines}); len(found) != 1 || found[0].Line != want {
			t.Errorf("%s: %+v, want line %d", path, found, want)
		}
	}
	if found := between(t, [2]string{"/var/spool/cron/crontabs/joe", lines}); len(found) != 1 || found[0].Line != 2 {
		t.Errorf("without the head: %+v", found)
	}
}

func TestAUserColumnIsDetected(t *testing.T) {
	c := checker(t)
	const wrong, job = "2: only the first is locked", "flock -n /run/x /bin/job; /bin/b\n"
	finds(t, c, "# m h dom mon dow user command\n* * * * * root "+job, wrong)
	finds(t, c, "#\n* * * * * root "+job+"* * * * * root /bin/job\n* * * * * news /bin/job\n", wrong) // no user of this machine
	finds(t, c, "#\n* * * * * news if /bin/job; then job; fi; "+job, wrong)
	for _, path := range []string{StandardInput, "/var/spool/cron/joe"} {
		for text, want := range map[string]bool{"root " + job: true, "root /srv/job a\n": true, "root root\n": false, "news /srv/job\n": false} {
			found, err := alone(c).Check(path, "PATH=/bin\n* * * * * "+text)
			if is := len(found) > 0 && found[0].What == "a user in a user's own crontab" && found[0].Line == 2; is != want || err != nil {
				t.Errorf("%s: %+v, %v", path, found, err)
			}
		}
	}
	if found, err := alone(c).Check(StandardInput, "* * * * * news /bin/true\n* * * * * root "+job+"* * * * * root /srv/a\n"); err != nil || len(found) != 2 || found[1].Line != 3 {
		t.Errorf("two lines name a user: %+v, %v", found, err)
	}
	dir := t.TempDir()
	program(t, dir, "root")
	right(t, c, "PATH="+dir+"\n* * * * * root /bin/job\n* * * * * date\n")
	finds(t, c, "* * * * * root date\n* * * * * date\n* * * * * make\n", "1: a user in a user's own crontab")
	c.UserColumn = true
	finds(t, c, "#\n* * * * * date "+job, wrong)
}

func TestAUserWhoCanMakeNoLockDirectoryIsFound(t *testing.T) {
	c := checker(t)
	c.UserColumn = true
	const wrong = "a user without a lock directory"
	const guard = "SHELL=/usr/lib/adlock/shell\n"
	finds(t, c, guard+"* * * * * www /bin/job\n* * * * * root /bin/job\n", "2: "+wrong)
	finds(t, c, "* * * * * www /bin/adlock run --name n -- /bin/job\n", "1: "+wrong)
	right(t, c,
		guard+"ADLOCK_DIR=/srv/locks\n* * * * * www /bin/job\n", guard+"HOME=/srv/www\n* * * * * www /bin/job\n",
		guard+"* * * * * www : n ADLOCK_DIR=/srv/locks ; /bin/job\n", guard+"* * * * * www flock -n /run/x /bin/job\n",
		"* * * * * www /bin/job\n", "* * * * * www flock -n /run/x /bin/job\n", "* * * * * www ADLOCK_DIR=/srv/locks /bin/adlock run --name n -- /bin/job\n",
		"* * * * * www /bin/adlock run --store /srv/locks --name n -- /bin/job\n", guard+"* * * * * www : n ADLOCK_DIR=/srv/$x ADLOCK_WAIT=0 && /bin/job # adlock: ignore\n",
	)
}

func TestAHomeOrDirectoryThatMovesTheLocksIsFoundOnce(t *testing.T) {
	const guard, jobs = "SHELL=/usr/lib/adlock/shell\n", "* * * * * joe /bin/job a\n* * * * * joe /bin/job b\n"
	c := checker(t)
	c.UserColumn = true
	finds(t, c, guard+"HOME=/srv/a\n"+jobs, "2: a HOME that moves the locks")
	finds(t, c, guard+"HOME=/srv/a\n* * * * * joe /bin/job a\nHOME=/srv/b\n* * * * * joe /bin/job b\n", "2: a HOME that moves the locks", "4: a HOME that moves the locks")
	finds(t, c, "HOME=/srv/a\n* * * * * joe /bin/adlock run --name n -- /bin/job\n", "1: a HOME that moves the locks")
	right(t, c,
		guard+"HOME=/home/joe/\n"+jobs, guard+"HOME=/srv/a\nADLOCK_DIR=/home/joe/.local/state/adlock\n"+jobs, guard+"HOME=/srv/a\nADLOCK_STORE=/srv/locks\n"+jobs,
		guard+"HOME=/srv/a\n* * * * * root /bin/job\n", guard+"HOME=/srv/a\n* * * * * joe : n ADLOCK_DIR=/srv/locks ; /bin/job\n",
		"HOME=/srv/a\n* * * * * joe /bin/job\n", "HOME=/srv/a\n* * * * * joe HOME=/home/joe /bin/adlock run --name n -- /bin/job\n",
		guard+"HOME=/srv/a\n* * * * * joe /bin/job # adlock: ignore\n",
	)
	finds(t, c, guard+"ADLOCK_DIR=/srv/locks\n"+jobs, "2: note")
	finds(t, c, "ADLOCK_DIR=/srv/locks\n* * * * * root /bin/adlock run --name n -- /bin/job\n", "1: note")
	right(t, c,
		guard+"ADLOCK_DIR=/home/joe/.local/state/adlock/\n"+jobs, guard+"* * * * * joe : n ADLOCK_DIR=/srv/locks ; /bin/job\n",
		guard+"ADLOCK_DIR=/srv/locks\nADLOCK_STORE=/srv/a\n"+jobs, "ADLOCK_DIR=/srv/locks\n"+jobs,
		guard+"ADLOCK_DIR=/srv/locks\n* * * * * list /bin/job\n", "ADLOCK_DIR=/srv/locks\n* * * * * root flock -n /run/x /bin/job\n",
	)
}

func TestAHomeThatMovesAnotherUsersLocksIsNoted(t *testing.T) {
	c := checker(t)
	c.Dir = func(user, home string) string { // of root, who runs the check
		if user == "joe" {
			return config.DirOfHome(cmp.Or(home, "/home/joe"))
		}
		return "/var/lib/adlock"
	}
	const job = "* * * * * /bin/adlock run --name n -- /bin/job\n"
	finds(t, c, "HOME=/srv/joe\n"+job, "1: note")
	right(t, c, "HOME=/home/joe\n"+job, "HOME=/srv/a\n"+job, "HOME=/srv/joe\n* * * * * /bin/job\n", "HOME=/srv/joe\nADLOCK_DIR=/var/lib/adlock\n"+job)
}

func TestOncePerDayInAnotherTimeZoneIsFound(t *testing.T) {
	c := checker(t)
	c.Zone, c.Differs = "Europe/Berlin", func(zone string) bool { return zone != "UTC" }
	const daily = "30 1 * * * /bin/adlock run --name n --once-per 1d -- /bin/job\n"
	finds(t, c, daily, "1: note")
	finds(t, c, "CRON_TZ=Asia/Tokyo\n"+daily, "2: days of another time zone")
	right(t, c,
		"TZ=Europe/Berlin\n"+daily, "CRON_TZ=UTC\n"+daily, strings.Replace(daily, "/bin/adlock", "TZ=Europe/Berlin /bin/adlock", 1),
		strings.Replace(daily, "1d", "1h", 1), strings.Replace(daily, "--once-per 1d", "--if-elapsed 12h", 1),
	)
	c.Zone = ""
	finds(t, c, daily)
}

func TestCheckReadsTheSettingsFileOfALinesUser(t *testing.T) {
	const run, job, limit, shell = " * * * joe /bin/adlock run ", " --name n -- /bin/job\n", "ADLOCK_EXPIRE_AFTER", "SHELL=/usr/lib/adlock/shell\n"
	for text, want := range map[string][2]string{
		"MAILTO=''\n0 *" + run + job:                               {"ADLOCK_HOOK", "1: told to nobody"},
		"ADLOCK_ENFORCE=1\n0 *" + run + job:                        {limit, "1: enforced without a limit"},
		"0 * * * * joe ADLOCK_ENFORCE=1 /bin/adlock run" + job:     {limit, "1: enforced without a limit"},
		"0 *" + run + "--enforce" + job:                            {limit, "1: an option that is refused"},
		"* *" + run + "--wait forever" + job:                       {limit, "1: waiters that pile up"},
		"0 *" + run + "--wait-elapsed" + job:                       {"ADLOCK_WAIT", "1: an option that is refused"},
		shell + "ADLOCK_WAIT_ELAPSED=1\n0 * * * * joe /bin/job\n":  {"ADLOCK_WAIT", "3: a setting that is refused"},
		"0 *" + run + job + "0 *" + run + job[:len(job)-1] + "2\n": {"ADLOCK_WAIT", "2: one lock for two jobs"},
		"0 *" + run + "--if-elapsed 1h" + job:                      {"ADLOCK_FROM_START", "1: an interval as long as the period"},
		"0 0" + run + "--expire-after 1h" + job:                    {"ADLOCK_ENFORCE", "1: note"},
	} {
		c := checker(t)
		c.UserColumn, c.Filed = true, func(user, variable string) bool { return user == "joe" && variable == want[0] }
		finds(t, c, text)
		finds(t, c, strings.ReplaceAll(text, "joe", "root"), want[1])
	}
}

func TestATextThatIsNoCrontabIsRefused(t *testing.T) {
	c := checker(t)
	for claim, text := range map[string]string{
		"prose": "# A page\n\nIt tells of locks, and of adlock_get.\nIt does so at length (so it seems).\n",
		"NUL":   "* * * * * /bin/job\x00\n",
		"huge":  strings.Repeat("# a word\n", Most/9+1),
		"lines": strings.Repeat("* * * * * /bin/job\n", mostLines+1),
	} {
		if found, err := c.Check("crontab", text); err == nil || !strings.HasPrefix(err.Error(), "is no crontab") {
			t.Errorf("%s: %v, %v", claim, found, err)
		}
	}
	for claim, text := range map[string]string{"empty": "", "comments": "# only this\n", "CRLF": "# only this\r\n", "variables": "A=b\n"} {
		if found, err := c.Check("crontab", text); len(found) > 0 || err != nil {
			t.Errorf("%s: %v, %v", claim, found, err)
		}
	}
}

func TestAScriptIsDetectedByItsFirstLine(t *testing.T) {
	c := checker(t)
	for _, text := range []string{
		"#!/bin/sh\n", "#!/bin/sh\n# a word\nA=b\n", "#!/bin/sh\r\ntrue\r\n", "#!/usr/bin/env bash\nif true; then\n\tjob\nfi\n",
		"#!/bin/sh\ncrontab - <<EOF\n* * * * * /bin/job\n* * * * * /bin/job\n* * * * * /bin/job\nEOF\n",
	} {
		if found, err := c.Check("crontab", text); err == nil || err.Error() != "is no crontab, but a script: shellcheck looks for mistakes in those" {
			t.Errorf("%v, %v:\n%s", found, err, text)
		}
	}
	finds(t, c, "#!/usr/bin/crontab\nA=b\n* * * * * flock -n /run/x /bin/a; /bin/b\n", "3: only the first is locked")
}

func TestALongNestedCommandDoesNotBreakTheCheck(t *testing.T) {
	c := checker(t)
	const wrong = "* * * * * flock -n /run/x /bin/a; /bin/b\n"
	for _, command := range []string{"(", "$(", "a|", "a;if ", "`", "${a-", "((", "{ ", "\"$(", "<("} {
		text := strings.Repeat(command, 4<<10/len(command))
		finds(t, c, "* * * * * "+text+"\n"+wrong, "1: a line that cron refuses", "2: only the first is locked")
		finds(t, c, "* * * * * "+text+text+"\n"+wrong, "1: a line that cron refuses", "2: only the first is locked")
	}
}

// crontabsOfOthers has the errors of those crontabs of packages and manuals that cannot be read at all. In the other
// crontabs check finds no mistake: as they are, below adlock's SHELL, and changed by wrap.
var crontabsOfOthers = map[string]string{
	"bsd-minix":      `is no crontab: line 1: not understood as the minute of a schedule: "?"`,
	"odd-anacrontab": `is no crontab: line 14: not understood as the day of month of a schedule: "cron.daily"`,
}

func TestALineThatCallsAMissingAdlockIsReported(t *testing.T) {
	const text = "* * * * *  /nowhere/adlock run --name n -- /bin/job\n"
	c := checker(t)
	finds(t, c, text)
	c.Shell = "/usr/lib/adlock/shell"
	finds(t, c, text, "1: an adlock that is not there")
	finds(t, c, "SHELL=/nowhere/lib/adlock/shell\n* * * * *  /bin/job\n", "1: a SHELL that is not there")
	finds(t, c, "* * * * *  "+filepath.Join(c.Elsewhere[0], "adlock")+" run --name n -- /bin/job\n")
	c.Elsewhere = nil
	finds(t, c, text)
}

func TestCheckFindsNoMistakesInRealCrontabs(t *testing.T) {
	files := must.Get(filepath.Glob("../crontab/testdata/*-*"))(t)
	if len(files) < 29 {
		t.Fatalf("%d crontabs", len(files))
	}
	c := checker(t)
	c.CronPath, c.Elsewhere = "/usr/bin:/bin", []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"}
	c.IsUser = func(name string) bool { return slices.Contains([]string{"root", "news", "list", "www-data"}, name) }
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		guarded := "SHELL=/usr/lib/adlock/shell\n" + string(text)
		for form, text := range map[string]string{"as it is": string(text), "guarded": strings.ReplaceAll(guarded, "\nSHELL=", "\nADLOCK_SHELL="), "wrapped": wrapped(string(text))} {
			found, err := alone(c).Check(file, text)
			want := crontabsOfOthers[filepath.Base(file)]
			if form == "guarded" {
				want = strings.NewReplacer("line 14", "line 15", "line 1:", "line 2:").Replace(want)
			}
			if len(found) > 0 || (err != nil || want != "") && (err == nil || err.Error() != want) {
				t.Errorf("%s, %s: %+v, %v, want %q", file, form, found, err, want)
			}
		}
	}
}

// wrapped returns a crontab, of the system or a user's, as wrap writes it.
func wrapped(text string) string {
	w := crontab.Wrapper{Adlock: "/usr/bin/adlock"}
	lines := crontab.Read(text, true)
	if crontab.Refuse(lines) != nil || slices.ContainsFunc(lines, func(l crontab.Line) bool { return l.Kind == crontab.Unknown }) {
		lines = crontab.Read(text, false)
	}
	return w.Wrap(lines).Text
}

// Any file is checked or refused.
func FuzzCheck(f *testing.F) {
	for _, p := range crontabs {
		for _, text := range append(slices.Clone(p.wrong), p.right...) {
			f.Add(text)
		}
	}
	c := &Checker{
		Options: run.Options(), Refusal: run.Refusal, LineRefusal: run.LineRefusal, Nearest: run.NearestSetting, Shell: "/nowhere/adlock/shell", Missing: func(string, string) bool { return true }, IsUser: func(string) bool { return false },
		CronPath: "/usr/bin:/bin", Homeless: func(string, string) bool { return true },
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, shell := range []string{"", "SHELL=/bin/bash\n", "SHELL=/usr/lib/adlock/shell\n"} {
			found, err := alone(c).Check("crontab", shell+text)
			for _, m := range found {
				if m.Line < 1 || m.What == "" || m.Reason == "" || m.Cure == "" || err != nil {
					t.Errorf("%+v, %v", m, err)
				}
			}
		}
	})
}

func TestASemaphoreIsNoMistakeUnlessItsOptionsClash(t *testing.T) {
	const a, b = "@daily /bin/adlock run --name n --slots 2 --expire-after 90m -- /bin/job a\n", "@daily /bin/adlock run --name n --slots 2 -- /bin/job b\n"
	finds(t, checker(t), a+b)
	finds(t, checker(t), a+strings.Replace(b, "--slots 2 ", "", 1), "2: one lock for two jobs")
	finds(t, checker(t), strings.Replace(a, "--expire", "--if-elapsed 1h --expire", 1), "1: an option that is refused")
	finds(t, checker(t), "SHELL=/usr/lib/adlock/shell\n* * * * * : n ADLOCK_SLOTS=3 ; /bin/job a\n* * * * * : n ADLOCK_SLOTS=3 ; /bin/job b\n")
	finds(t, checker(t), "SHELL=/usr/lib/adlock/shell\nADLOCK_PROGRAM=adlock\nADLOCK_SLOTS=3\n* * * * * /bin/job\n", "4: a setting that is refused")
}
