package crontab

import (
	"slices"
	"strings"
	"testing"
)

var flockWrapper = Wrapper{Adlock: "/a/adlock", Flock: true}

// NAME stands for the name of the line's only lock.
func TestAFlockLineBecomesAnEquivalentRunLine(t *testing.T) {
	const run = "/a/adlock run --name NAME --flock "
	for line, want := range map[string]string{
		"flock /f x":                                run + "/f --wait forever -E 1 -- x",
		"/usr/bin/flock -xn /f x -n":                run + "/f --wait 0 -E 1 -- x -n",
		"flock -w5 -e /f x":                         run + "/f --wait 5s -E 1 -- x",
		"flock -w .5 /f x":                          run + "/f --wait 0.5s -E 1 -- x",
		"flock -w 5 -n /f x":                        run + "/f --wait 0 -E 1 -- x",
		"flock -nE075 /f x":                         run + "/f --wait 0 -E 075 -- x",
		"flock -sn /f x":                            run + "/f --shared --wait 0 -E 1 -- x",
		"flock -s -x /f x":                          run + "/f --wait forever -E 1 -- x",
		"flock --nb --conflict-exit-code=3 -- /f x": run + "/f --wait 0 -E 3 -- x",
		"flock --wait=9 --exclusive /f x":           run + "/f --wait 9s -E 1 -- x",
		"flock -n /f -c 'x; y | z'":                 run + "/f --wait 0 -E 1 -- /bin/sh -c 'x; y | z'",
		`flock -n /f --command "x '$Y'" >l`:         run + `/f --wait 0 -E 1 -- /bin/sh -c "x '$Y'" >l`,
		"flock -n /run/x-c /bin/sh -c 'x'":          run + "/run/x-c --wait 0 -E 1 -- /bin/sh -c 'x'",
		"flock -n /f -- x":                          run + "/f --wait 0 -E 1 -- -- x",
		"flock -n 9 x":                              run + "9 --wait 0 -E 1 -- x",
		"A=b C=d flock -n /f x $E":                  "A=b C=d " + run + "/f --wait 0 -E 1 -- x $E",
		"flock \t -n  /f  x  y ":                    run + "/f --wait 0 -E 1 --  x  y ",
		"cd /d && flock -n f x >>l 2>&1; y":         "cd /d && " + run + "f --wait 0 -E 1 -- x >>l 2>&1; y",
		"flock -n /f x <i | tee l &":                run + "/f --wait 0 -E 1 -- x <i | tee l &",
		"flock -n /f >l x":                          run + "/f --wait 0 -E 1 -- >l x",
		"[ -e /x ] || flock -n /f x # note":         "[ -e /x ] || " + run + "/f --wait 0 -E 1 -- x # note",
		"sleep 5; exec nice -n 9 flock /f x":        "sleep 5; exec nice -n 9 " + run + "/f --wait forever -E 1 -- x",
		"timeout -k 9 60 flock -w 5 /f x":           "timeout -k 9 60 " + run + "/f --wait 5s -E 1 -- x",
		`flock -n "$HOME/a b" x`:                    run + `"$HOME/a b" --wait 0 -E 1 -- x`,
		"flock -n ~/f x":                            run + "~/f --wait 0 -E 1 -- x",
		"flock -n $HOME/${USER}.f x":                run + "$HOME/${USER}.f --wait 0 -E 1 -- x",
		`flock -n /f date +\%F%in%put`:              run + `/f --wait 0 -E 1 -- date +\%F`,
		`flock -n /f\%1 sh -c 'x \%Y'%in`:           run + `/f\%1 --wait 0 -E 1 -- sh -c 'x \%Y'`,
		"flock /f flock -n /g x":                    run + "/f --wait forever -E 1 -- flock -n /g x",
		"flock -n '/f # g' x":                       run + "'/f # g' --wait 0 -E 1 -- x",
	} {
		before := "@hourly " + line
		l := one(t, before, false)
		r := flockWrapper.Wrap(Read(before+"\r\n", false))
		names := namesIn(r.Text)
		if len(names) != 1 {
			t.Errorf("%s became\n%q %v", line, r.Text, r.Left)
			continue
		}
		want += " # was: " + l.Command + l.Input + "\r\n"
		wrapsTo(t, flockWrapper, before+"\r\n", "@hourly "+strings.Replace(want, "NAME", names[0], 1))
		if again := flockWrapper.Wrap(Read(r.Text, false)); again.Text != r.Text {
			t.Errorf("%s is wrapped again:\n%s", line, again.Text)
		}
		if without := (&Wrapper{Adlock: "/a/adlock"}).Wrap(Read(before, false)); without.Done != 0 || without.Left[0].Why != "is under flock already" {
			t.Errorf("%s without --flock: %+v", line, without)
		}
	}
}

func TestAFlockLineThatRunCannotExpressIsLeftUnchanged(t *testing.T) {
	for line, want := range map[string]string{
		"flock -n 9": "with a descriptor, or without a command", "(flock -n 9 || exit; y) 9>/f": "with a descriptor, or", "flock": "with a descriptor, or", "flock -n": "with a descriptor, or",
		"flock -o /f x": "or not with this value: -o", "flock --close /f x": "not with this value: --close", "flock -u /f x": "not with this value: -u", "flock -F /f x": "not with this value: -F",
		"flock -xno /f x": "not with this value: -xno", "flock --no-fork /f x": "not with this value: --no-fork", "flock --verbose /f x": "not with this value: --verbose", "flock -V": "with a descriptor", "flock -c x /f": "not with this value: -c",
		"flock --no /f x": "not with this value: --no", "flock --x /f x": "not with this value: --x", "flock --shared=1 /f x": "not with this value: --shared=1", "flock --fcntl /f x": "not with this value: --fcntl",
		"flock -w 5m /f x": "not with this value: -w", "flock -w=5 /f x": "not with this value: -w=5", "flock -w $T /f x": "not with this value: -w", "flock -w '' /f x": "not with this value: -w", "flock --wait= /f x": "not with this value: --wait=", "flock -w 0.0001 /f x": "not with this value: -w",
		"flock -w -1 /f x": "not with this value: -w", "flock -E 256 /f x": "not with this value: -E", "flock -E 0x3 /f x": "not with this value: -E", "flock -w 99999999999 /f x": "not with this value: -w", "flock -nw": "with a descriptor",
		"flock -n $F x": "with a FILE that adlock run does not take as it stands: $F", "flock -n ${F:-/f} x": "does not take as it stands: ${F:-/f}", "flock -n /f* x": "as it stands: /f*", "flock -n /{f,g} x": "as it stands: /{f,g}", "flock -n $(x) y": "as it stands: $(x)",
		`flock -n "$(x)" y`: "as it stands", `flock "-n" /f x`: "as it stands", "flock -n -- -f x": "or not with this value: -f", "flock -n /dev/null x": "as it stands: /dev/null",
		"flock /f -c x y": "with more or less than one word behind -c", "flock /f -c": "with more or less than one word", "flock /f -c $X": "with more or less", "SHELL=/bin/zsh flock /f -c x": "or with a SHELL of its own",
		"flock 2>&1 -n /f x": "with a redirection among its words", "flock -n >l /f -c x": "with a redirection among", "flock -n /f >l -c x": "with a redirection among",
		"sudo -u w flock /f x": "behind sudo", "env -i flock /f x": "behind env", "busybox flock /f x": "behind busybox", "sh -c 'flock /f x'": "inside another command", "'flock' /f x": "inside another command",
		"flock -n /f x; (": "in a line that no shell understands", `flock -n /f x \`: "in a line that no shell understands", "flock -n /f x; sudo flock /g y": "behind sudo", "flock -n /f x; flock -n": "with a descriptor",
	} {
		r := flockWrapper.Wrap(Read("@hourly "+line+"\n", false))
		if r.Done != 0 || len(r.Left) != 1 || !strings.HasPrefix(r.Left[0].Why, stays) || !strings.Contains(r.Left[0].Why, want) {
			t.Errorf("%s: %s%v, want %q", line, r.Text, r.Left, want)
		}
	}
	for text, want := range map[string]string{
		`@hourly sh -c "x +%F"`: "cron ends the command at its first %", "@hourly flock /f sh -c 'x &'": "goes on in the background", "@hourly flock /f sh -c 'x --token=y &'": "all the same: x --token=***", "@hourly flock /f -c 'screen -dm x'": "goes on in the background",
		"ADLOCK_SHARED=1\n@hourly flock /f x": "and under adlock run ADLOCK_SHARED would change what it does", "ADLOCK_EXPIRE_AFTER=9m\n@hourly flock /f x": "ADLOCK_EXPIRE_AFTER would change",
		"SHELL=/usr/lib/adlock/shell\n@hourly flock /f x": "is under flock already", "SHELL=/bin/csh\n@hourly flock /f x": "of whose quotes nothing is known", "@hourly setlock /f x; flock /f y": "is under setlock already",
		"@hourly flock /f x # was: y": "and could not be taken out again", "@hourly flock '/f # was: y' x": "and could not be taken out again",
		"@hourly : n ; flock /f x": "says a name or a limit", "@hourly flock /f " + strings.Repeat("x", 900): "998 bytes", "0 0 30 2 * flock /f x": "never starts", "A=1\n@hourly flock /f x\nA=2\n@daily flock /f x": "would have one lock with line",
	} {
		r := flockWrapper.Wrap(Read(text, false))
		if r.Text != text || len(r.Left) == 0 || !strings.Contains(r.Left[0].Why, want) {
			t.Errorf("%q: %+v, want %q", text, r, want)
		}
	}
}

func TestDifferentFlockLinesWithOneFileGetDifferentNames(t *testing.T) {
	for text, count := range map[string]int{
		"@daily flock /f x\n@hourly flock /f y":                      2,
		"@daily flock /f x\n@hourly flock /f x":                      1,
		"@daily flock /f x\n@hourly flock /g x":                      2,
		"@daily flock -n /f x\n@hourly flock /f x":                   2,
		"@daily cd /a && flock f x\n@hourly cd /b && flock f x":      2,
		"@daily flock /f x; flock /f x; flock /g x & flock -s /h y ": 4,
	} {
		r := flockWrapper.Wrap(Read(text, false))
		names := namesIn(r.Text)
		slices.Sort(names)
		if names = slices.Compact(names); len(names) != count || len(r.Left) > 0 {
			t.Errorf("%q: names %q, %v", text, names, r.Left)
		}
		if back := Unwrap(Read(r.Text, false)); back.Text != text {
			t.Errorf("%q comes back as %q", text, back.Text)
		}
	}
	if got := namesIn(flockWrapper.Wrap(Read("@daily flock -n /f -c 'cd /d; php /srv/poll.php'", false)).Text); !strings.HasPrefix(got[0], "poll.php-") {
		t.Error(got)
	}
}

// namesIn are all names that adlock's lines give.
func namesIn(text string) (names []string) {
	for _, found := range given.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

func TestWrapGivesFlocksCommandTheCrontabsShell(t *testing.T) {
	const text = "SHELL=/bin/bash\n@daily flock /f -c '[[ x ]]'\n"
	r := flockWrapper.Wrap(Read(text, false))
	if !strings.Contains(r.Text, " -- /bin/bash -c '[[ x ]]' # was: flock /f -c '[[ x ]]'\n") || Unwrap(Read(r.Text, false)).Text != text {
		t.Errorf("%+v", r)
	}
}

func TestEachFlockCommandOfALineGetsTheLimit(t *testing.T) {
	const text = "@hourly flock -n /f x; flock -w 5 /g y"
	w := Wrapper{Adlock: "/a/adlock", Limit: FromSchedule, Flock: true}
	r := w.Wrap(Read(text, false))
	if strings.Count(r.Text, " --expire-after 1h30m --flock /") != 2 || Unwrap(Read(r.Text, false)).Text != text {
		t.Errorf("%+v", r)
	}
}

func TestUnwrapKeepsAFlockLineThatWasEdited(t *testing.T) {
	r := flockWrapper.Wrap(Read("@hourly cd /d; flock -n /f -c 'x'; flock /g y", false))
	if r.Done != 1 {
		t.Fatal(r)
	}
	for _, edit := range [][2]string{
		{"--wait 0", "--wait 5s"}, {"--wait 0", "--wait  0"}, {"--flock /f", "--flock /h"}, {"# was: cd /d; flock -n /f", "# was: cd /d; flock /f"}, {"-E 1", "-E 75"}, {"--name x", "--name z"}, {"/bin/sh", "/bin/bash"},
		{"cd /d", "cd /e"}, {"/a/adlock", "adlock"}, {" # was: cd /d; flock -n /f -c 'x'; flock /g y", ""}, {"# was: ", "# "}, {" flock /g y", ""},
	} {
		text := strings.Replace(r.Text, edit[0], edit[1], 1)
		if back := Unwrap(Read(text, false)); text == r.Text || back.Text != text || len(back.Left) != 1 || back.Left[0].Why != "is not as wrap writes it: it was written or edited by hand" {
			t.Errorf("%q: %q %+v", edit, text, back)
		}
	}
	if back := Unwrap(Read("ADLOCK_SHARED=1\n"+r.Text, false)); back.Done != 1 {
		t.Errorf("below another variable: %+v", back)
	}
	elsewhere := strings.ReplaceAll(r.Text, "/a/adlock", "/usr/bin/adlock")
	if back := Unwrap(Read(elsewhere, false)); back.Done != 1 {
		t.Errorf("%+v", back)
	}
}

// flocked is a real crontab with each job under flock.
func flocked(text string, userColumn bool) string {
	var b strings.Builder
	for i, l := range Read(text, userColumn) {
		if l.Kind == Job {
			l.Command = []string{"flock -n /f ", "/usr/bin/flock -w 5 \"$HOME/f\" ", "flock /f -c true; flock -E3 -xn /g ", "cd / && flock -s ~/f "}[i%4] + l.Command
		}
		b.WriteString(l.Text())
	}
	return b.String()
}

func TestUnwrapRestoresRealCrontabsWithFlock(t *testing.T) {
	done := 0
	for name, was := range crontabs(t) {
		for _, text := range []string{was, flocked(was, hasUsers(name))} {
			_, _, n := throughAndBack(t, flockWrapper, name, text)
			done += n
		}
	}
	if done != 127 {
		t.Errorf("%d lines are wrapped", done)
	}
}
