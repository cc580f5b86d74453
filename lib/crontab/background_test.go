package crontab

import (
	"strconv"
	"strings"
	"testing"

	"adlock/lib/fault"
)

// inBackground are commands of which a part runs on after the shell's end: that part, or the program that detaches it.
var inBackground = map[string]string{
	"job &": "job &", "nohup job >/tmp/x 2>&1 &": "nohup job >/tmp/x 2>&1 &", "a; b & c": "b &", "(job &)": "job &", "if x; then y& fi": "y&",
	"sh -c 'job &'": "job &", "nice /bin/bash -c \"a; job &\"": "job &", "screen -dmS x job": "screen", "/usr/bin/screen -S x -d -m job": "screen", "screen -AdmS x job": "screen",
	"tmux new-session -d -s x job": "tmux", "tmux -L a new -Ad job": "tmux", "setsid -f job": "setsid", "nohup setsid --fork job": "setsid",
	"start-stop-daemon -S -b -x /bin/job": "start-stop-daemon", "start-stop-daemon --start --background --exec /bin/job": "start-stop-daemon",
	"flock -n f screen -dm job": "screen", "sh -c 'screen -dm job'": "screen", "x && { y & }": "y &",
}

func TestJobsThatOutliveTheirShellAreDetected(t *testing.T) {
	for command, want := range inBackground {
		detaches := want
		if strings.Contains(want, "&") { // the shell detaches it
			detaches = ""
		} else {
			want = command
		}
		if got := Background(command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		if got := Detached(command); got != detaches {
			t.Errorf("%s: detached %q, want %q", command, got, detaches)
		}
		if _, why := wrapOne(t, "@hourly "+command); !strings.Contains(why, "background") && !strings.Contains(why, "under flock") {
			t.Errorf("%s: not wrapped for %q", command, why)
		}
	}
	for _, command := range []string{
		"job", "a && b", "job >/dev/null 2>&1", "job &>/dev/null", "a & b & wait", "a & wait $!; b", "nohup job", "setsid job", "setsid -w job", "echo 'a & b'", "curl 'http://x/?a=b&c=d'",
		"x=$(job & echo $!); y", "echo $((6 & 3))", "a |& b", "screen -ls", "screen -S x -X stuff y", "tmux kill-session -t x", "tmux send-keys -t x 'job -d'", "a # b &", "a \\&", "start-stop-daemon -K -p x", "a 'unclosed &",
		strings.Repeat("( ", longestParsed/4) + "job &" + strings.Repeat(" )", longestParsed/4),
	} {
		if got := Background(command); got != "" {
			t.Errorf("%s: %q", command, got)
		}
	}
}

func TestANestedShellCommandIsParsedOnce(t *testing.T) {
	words, substituted := "job", "job"
	for _, quote := range []func(string) string{strconv.Quote, fault.Quoted, fault.Quoted} {
		words = strings.Repeat("sh ", 20) + "-c " + quote(words)
	}
	for range 14 {
		substituted = `sh -c "$(` + substituted + `)"`
	}
	for name, reads := range map[string]func(command string) string{"Background": Background, "lockerOf": lockerOf, "VersionInPath": VersionInPath} {
		for _, command := range []string{words, substituted} {
			if n := testing.AllocsPerRun(1, func() { reads(command) }); n > 1e5 {
				t.Errorf("%s: %.0f allocations for %s", name, n, command)
			}
		}
	}
}
