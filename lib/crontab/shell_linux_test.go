package crontab

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"adlock/test/support/must"
	"adlock/test/support/need"
)

// cron is one version of cron, as it changes a line before it passes the command to the shell (do_command.c): the
// first % without a backslash ends the command, and the backslash before some bytes is removed.
type cron struct{ is, unescapes string }

var crons = []cron{{"Debian's and FreeBSD's cron", `%\`}, {"cronie", `%`}, {"vixie-cron 3.0", ``}}

// hands returns the text that the shell gets with -c, and the rest for standard input.
func (c cron) hands(l *Line) (command, input string) {
	text := l.Command + l.Input
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '%':
			return b.String(), text[i:]
		case text[i] == '\\' && i+1 < len(text):
			if i++; strings.IndexByte(c.unescapes, text[i]) < 0 {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}

// Scripts in the helper's place: telling prints the command that the helper was to run, running
// runs it. show prints its own arguments.
const (
	telling = "#!/bin/sh\n" + `while [ "$1" != -- ]; do shift; done; shift; for word do printf '%s\0' "$word"; done` + "\n"
	running = "#!/bin/sh\n" + `while [ "$1" != -- ]; do shift; done; shift; exec "$@"` + "\n"
	show    = "#!/bin/sh\n" + `for word do printf '%s\0' "$word"; done` + "\n"
)

// stage is a directory with a helper of one kind, and show.
func stage(t *testing.T, helper string) (dir string, w Wrapper) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"adlock": helper, "show": show} {
		must.Do(t, need.WriteProgram(filepath.Join(dir, name), []byte(text), 0o755))
	}
	w = Wrapper{Adlock: filepath.Join(dir, "adlock")}
	if !w.CanStand() {
		need.Skip(t, "the directory for temporary files cannot stand in a crontab:", dir)
	}
	return dir, w
}

// output returns what a shell prints if it gets the text in the way that cron passes it.
func output(shell, dir, text string) string {
	command := exec.Command(shell, "-c", text)
	command.Dir, command.Env = dir, []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=/ho me", "V=a *", "W=b"}
	out, _ := command.CombinedOutput() // a text that is no command fails in the same way before and after Wrap
	return string(out)
}

// wrapWith wraps the job on line jobAt of the text, and returns that line before and after. If wrap
// leaves the job, the case is skipped.
func wrapWith(t *rapid.T, w Wrapper, text string, jobAt int) (was, is Line) {
	lines := Read(text, false)
	r := w.Wrap(lines)
	if r.Done != 1 {
		t.Skip("left")
	}
	return lines[jobAt], Read(r.Text, false)[jobAt]
}

func TestTheShellGetsExactlyTheTextThatCronWouldPass(t *testing.T) {
	dir, w := stage(t, telling)
	for _, name := range strings.Fields("sh dash ash bash ksh ksh93 mksh zsh yash") {
		shell, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			bytes := []rune(`x'"\%;&|$` + "`" + ` (){}<>*?~#!=[]-+,.:@^/` + "\t\r\x01\x7f")
			rapid.Check(t, func(t *rapid.T) {
				command := rapid.StringOfN(rapid.SampledFrom(bytes), 1, 40, -1).Draw(t, "command")
				was, is := wrapWith(t, w, "SHELL="+shell+"\n@hourly x;"+command+"\n", 1)
				c := rapid.SampledFrom(crons).Draw(t, "cron")
				text, input := c.hands(&was)
				wrapped, inputThen := c.hands(&is)
				want := shell + "\x00-c\x00" + text + "\x00"
				if got := output(shell, dir, wrapped); got != want || inputThen != input {
					t.Fatalf("%s: %q gives\n%q with %q, not\n%q with %q", c.is, wrapped, got, inputThen, want, input)
				}
			})
		})
	}
}

func TestAWrappedPlainCommandGetsTheSameArguments(t *testing.T) {
	dir, w := stage(t, running)
	pieces := []string{"a", "b-c", "'d e'", `"f g"`, "$V", `"$V"`, `"$W h"`, "$W", "*", "s?ow", "[as]*", "~", "~/i", "j=k", `\ `, `\%`, `'\%'`, `\\`, `\'`, `"it's"`, "--l", "", "/m", "n:o,p@q+r^s", "'x;y'", "\t", " ", `"\$\""`, `'$V'`}
	rapid.Check(t, func(t *rapid.T) {
		arguments := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
		program := rapid.SampledFrom([]string{"show", "./show", dir + "/show"}).Draw(t, "program")
		was, is := wrapWith(t, w, "@hourly "+program+" "+arguments+"\n", 0)
		if !isPlain(was.Command) {
			t.Skip("not plain")
		}
		c := rapid.SampledFrom(crons).Draw(t, "cron")
		text, _ := c.hands(&was)
		wrapped, _ := c.hands(&is)
		if got, want := output("/bin/sh", dir, wrapped), output("/bin/sh", dir, text); got != want {
			t.Fatalf("%s: %q gives\n%q, not\n%q", c.is, wrapped, got, want)
		}
	})
}
