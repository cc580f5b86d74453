package cronline

import (
	"strings"
	"testing"
)

func TestAJobIsNamedAfterWhatItRuns(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/bin/rsync -a a b": "rsync", "$HOME/bin/daily.job": "daily.job", "nice -n 10 ionice -c3 backup": "backup", "A=b B= backup >x 2>&1": "backup",
		"cd /srv && make all": "make", "test -x /a/b && perl -e 'sleep 1' && certbot -q renew": "certbot", "if [ -x /a ]; then /b/tidy; fi": "tidy",
		"[ $(date +%d) -le 7 ] && weekly": "weekly", "run-parts --report /etc/cron.hourly": "cron.hourly", "sh /etc/daily | mail root": "daily", "php -q /a/poller.php": "poller.php",
		"bash -c 'cd /x; dump all'": "dump", "sudo -u www-data -- /x/y": "y", "timeout -k 5 30m /x/y": "y", "command -v x >/dev/null && x": "x", "flocker": "flocker",
		"echo hello": "echo", "true": "true", "perl -e 1": "perl", `"/a b/c d"`: "c_d", "/ä": "job", "-x": "x", "(a)": "a", "{ a; }": "a", "#": "job", "A=b": "job", "a # b": "a", `\a`: "a", "''": "job",
		strings.Repeat("x", 99): strings.Repeat("x", longestBase), ">out x": "x", "`x`": "x", "x 2>&1 3<y": "x", "[": "job", "sh": "sh", "sh -c": "sh", "sh -c ''": "job", "sudo -u": "job",

		"sleep $((RANDOM % 30)); /srv/tracker/poll.py": "poll.py", `sleep $((RANDOM \% 30)); /srv/tracker/poll.py`: "poll.py",
		"sleep $(( $(od -An -N2 -i /dev/urandom) * 60 / 32768 )) && a": "a", "sleep $((0x$(openssl rand -hex 1) % 30)); a": "a", "sleep `shuf -i 0-9 -n 1`; a": "a",
		"sleep ${RANDOM:0:2}; a": "a", `sleep "$(expr $RANDOM % 9)"; a`: "a", "sleep $(echo ')' | wc -l); a": "a",
		"PGPASSWORD=hunter2 pg_dump x": "pg_dump", "A=$(date +%F) b": "b", "cd /x || exit 1; b": "b", "[ -e /run/x ] || b": "b", "test -f x; b": "b",
		"sudo -Hu www-data php /x/cron.php": "cron.php", "sudo -uwww-data b": "b", "timeout -s KILL 9 b": "b", "ionice -c idle -n 7 b": "b", "ionice --class idle --classdata 3 b": "b", "timeout --signal KILL 9 b": "b", "sudo --user=c b": "b", "env --argv0 c -u D b": "b", "taskset 0x3 b": "b", "taskset -c 0,2-7:2 b": "b",
		"env -i -u A B=c d": "d", "/usr/bin/env bash -lc 'cd /x && b'": "b", "su - postgres -c 'cd; pg_dump x'": "pg_dump", "runuser -u x -- b": "b", "sshpass -p hunter2 ssh h": "ssh",
		"cd /x && python3 poll.py": "poll.py", "php artisan schedule:run": "artisan", "python3.11 /x/y.py": "y.py", "for i in 1 2; do b $i; done": "b", "while sleep 5; do b; done": "b",
		"case $(date +%u) in 6) a;; *) b;; esac": "a", "pgrep x || x --daemon": "x", "set -e; umask 077; b": "b", "nice -n 10 nohup b &": "b",
	} {
		if got := Base(command); got != want {
			t.Errorf("%s is called %q, want %q", command, got, want)
		}
	}
}

func TestNoNameContainsAVariablesValue(t *testing.T) {
	for command, want := range map[string]string{
		"AUTH=(user:S3cr3t -v); curl x": "curl", "AUTH=( user:S3cr3t ) ; curl x": "curl", "A+=(S3cr3t); curl x": "curl", `A=("a) S3cr3t" $(b)); curl x`: "curl",
		"export A=(S3cr3t); curl x": "curl", "ARGS+=S3cr3t job": "job", "PW[0]=S3cr3t; job": "job", "PW[$i]+=S3cr3t job": "job", "A=(S3cr3t": "job",
	} {
		if got := Base(command); got != want {
			t.Errorf("%s is called %q, want %q", command, got, want)
		}
	}
}

func FuzzBase(f *testing.F) {
	for _, seed := range []string{"sleep $((RANDOM % 30)); a", "a `b $(c \"d", "case x in a) b", "$(", "${", "sudo -u", "sh -c 'sh -c x'", "((x))"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if base := Base(command); base == "" || len(base) > longestBase || strings.Trim(base, letters+decimal+".-") != "" {
			t.Errorf("%q is called %q", command, base)
		}
	})
}
