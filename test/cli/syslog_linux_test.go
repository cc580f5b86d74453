package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// withRsyslog runs the command $1 beside a real rsyslogd, in a /dev of its own. rsyslogd opens /dev/log
// before it logs its own start, which is to be the first message.
const withRsyslog = `
cd "$DIR" && mkdir dev && mount -t tmpfs none dev || exit
for n in null zero urandom tty; do : >dev/$n && mount --bind /dev/$n dev/$n || exit; done
mount --move dev /dev || exit
rsyslogd -n -f "$DIR/rsyslog.conf" -i "$DIR/pid" &
n=0
until grep -qs "^syslog.info rsyslogd: " messages; do n=$((n + 1)); [ $n -lt 600 ] || exit; sleep 0.1; done
eval "$1"
logger end || exit
n=0
until grep -qs "root: end" messages; do n=$((n + 1)); [ $n -lt 600 ] || exit; sleep 0.1; done
kill $! && wait $!
cat messages
`

const rsyslogConf = `
module(load="imuxsock")
template(name="plain" type="string" string="%syslogfacility-text%.%syslogseverity-text% %syslogtag%%msg%\n")
*.* action(type="omfile" file="DIR/messages" template="plain")
`

func TestRsyslogGetsReportsAndFailedRuns(t *testing.T) {
	need.Root(t)
	need.Tools(t, "rsyslogd", "logger")
	need.Namespaces(t, "--mount", "--pid", "--fork", "--mount-proc")
	s := newStage(t)
	for name, text := range map[string]string{
		"rsyslog.conf": strings.Replace(rsyslogConf, "DIR", s.dir, 1),
		"script":       "#!/bin/sh\nADLOCK_SYSLOG=1\n. '" + filepath.Join(helper.Root(), "sh/adlock.sh") + "' || exit 69; adlock_guard\nexit 4\n",
	} {
		must(t, need.WriteProgram(filepath.Join(s.dir, name), []byte(text), 0o700))
	}
	c := s.command()
	c.Env = append(c.Env, "DIR="+s.dir, "A="+helper.Binary(t), "ADLOCK_BIN="+helper.Binary(t), "PATH="+os.Getenv("PATH"))
	c.Args = []string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", withRsyslog, "sh", `
		"$A" run --name quiet -- sh -c 'exit 5'
		"$DIR/script"
		export ADLOCK_SYSLOG=1
		"$A" run --name well -- true
		"$A" run --name failed -- sh -c 'exit 3'
		"$A" run --name slow --expire-after 1s --enforce -- sleep 60 2>/dev/null
		"$A" run --name outer -- "$A" run --name inner -- false
	`}
	r := c.Run(t)
	want := regexp.MustCompile(`^syslog\.info rsyslogd: .*
user\.warning adlock\[\d+\]: root: guard \S+/script: failed with status 4
user\.warning adlock\[\d+\]: root: run failed: failed with status 3
user\.warning adlock\[\d+\]: root: run slow: ended by force: it had run for \d+s, ExpireAfter is 1s
user\.warning adlock\[\d+\]: root: run inner: failed with status 1
user\.warning adlock\[\d+\]: root: run outer: failed with status 1
user\.notice root: end
$`)
	if !want.MatchString(r.Out) {
		t.Errorf("status %d\n%s%s", r.Status, r.Out, r.Err)
	}
}
