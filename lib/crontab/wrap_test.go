package crontab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"adlock/lib/cronline"
	"adlock/lib/limit"
	"adlock/test/support/must"
)

var wrapper = Wrapper{Adlock: "/usr/bin/adlock", Limit: FromSchedule}

const hourly = "@hourly /usr/bin/adlock run --name "

// wrapOne wraps a crontab of one job; "" and the reason if it is left.
func wrapOne(t testing.TB, text string) (wrapped, why string) {
	t.Helper()
	r := wrapper.Wrap(Read(text, false))
	if r.Done+len(r.Left) != 1 {
		t.Fatalf("%q: %+v", text, r)
	}
	if r.Done == 0 {
		return "", r.Left[0].Why
	}
	return r.Text, ""
}

// wrapsTo fails unless a crontab is wrapped to that text, and unwrapped to what it was.
func wrapsTo(t *testing.T, w Wrapper, text, want string) {
	t.Helper()
	r := w.Wrap(Read(text, false))
	if back := Unwrap(Read(want, false)); r.Text != want || back.Text != text || len(r.Left)+len(back.Left) > 0 {
		t.Errorf("%q became\n%q (%v), want\n%q, which comes back as\n%q", text, r.Text, r.Left, want, back.Text)
	}
}

// throughAndBack wraps a crontab, and fails unless only commands have changed, and unwrap takes all back.
func throughAndBack(t *testing.T, w Wrapper, name, text string) (lines, after []Line, done int) {
	t.Helper()
	lines = Read(text, hasUsers(name))
	r := w.Wrap(lines)
	after = Read(r.Text, hasUsers(name))
	for i := range lines {
		changed := lines[i].Text() != after[i].Text()
		if err := onlyCommandChanged(&lines[i], &after[i]); err != nil || lines[i].Kind != Job && changed {
			t.Errorf("%s:%d %q %v", name, i+1, after[i].Text(), err)
		}
	}
	if back := Unwrap(after); back.Text != text || back.Done != r.Done || len(back.Left) != 0 {
		t.Errorf("%s is not what it was: %d of %d lines, %v", name, back.Done, r.Done, back.Left)
	}
	if again := w.Wrap(after); again.Text != r.Text {
		t.Errorf("%s is wrapped twice", name)
	}
	return lines, after, r.Done
}

// The 29 files have 68 jobs, one of them @reboot. No job is under a lock before.
func TestUnwrapRestoresRealCrontabsByteForByte(t *testing.T) {
	wrapped := 0
	for name, text := range crontabs(t) {
		lines, after, done := throughAndBack(t, wrapper, name, text)
		for i, l := range lines {
			if l.Kind == Job && !l.Schedule.Reboot && after[i].Text() == l.Text() {
				t.Errorf("%s:%d is not wrapped", name, l.Number)
			}
		}
		wrapped += done
	}
	if wrapped != 67 {
		t.Errorf("%d lines are wrapped", wrapped)
	}
}

func TestDifferentCommandsGetDifferentNames(t *testing.T) {
	for text, want := range map[string]string{
		"@daily rsync -a /srv/data b\n@daily rsync -a /etc b":       "rsync-1855291391 rsync-2175194331",
		"@daily periodic daily\n@weekly periodic weekly":            "periodic-1 periodic-2",
		"@daily x\n@weekly x \n@daily x":                            "x-12738659 x-12738659 x-12738659", // the same job
		"A=1\n@daily x":                                             "x-12738659",
		"@daily sleep $((RANDOM \\% 30)); /srv/tracker/poll.py":     "poll.py-1",
		"@daily /usr/bin/adlock run --name x -- y\n@daily x":        "x x-1",
		"@daily adlock run --name=x-b -- y\n@daily x b\n@daily x c": "x-b x-1 x-2",
	} {
		got := namesIn(wrapper.Wrap(Read(text, false)).Text)
		if !slices.EqualFunc(got, strings.Fields(want), alike) {
			t.Errorf("%q: names %q, want %q", text, got, want)
		}
		for range 10 {
			if again := namesIn(wrapper.Wrap(Read(text, false)).Text); !slices.Equal(again, got) {
				t.Fatalf("%q: names %q, and then %q", text, got, again)
			}
		}
	}
}

// alike reports whether two names are the same but for an unspecified checksum.
func alike(got, want string) bool {
	base, sum, _ := strings.Cut(want, "-")
	return got == want || len(sum) == 1 && strings.HasPrefix(got, base+"-") && len(got) > len(want)
}

func TestJobsThatWouldShareANameAreLeftUnwrappedAndReported(t *testing.T) {
	for text, left := range map[string]int{
		"A=1\n@daily x\nA=2\n@daily x": 2, "@daily x%1\n@daily x%2": 2, "@daily x\n@weekly x\nA=1\n@daily x": 3,
		"@daily adlock run --name x-12738659 y\n@daily x": 2,
	} {
		if r := wrapper.Wrap(Read(text, false)); r.Text != text || len(r.Left) != left {
			t.Errorf("%q: %+v", text, r)
		}
	}
	users := Read("@daily root x\n@daily www x\n", true)
	if r := wrapper.Wrap(users); r.Done != 0 || len(r.Left) != 2 || !strings.HasPrefix(r.Left[0].Why, "would have one lock with line 2, x-12738659, and is another job") {
		t.Errorf("%+v", r)
	}
}

func TestALineWithAVersionOrALongSleepIsWrappedAndReported(t *testing.T) {
	r := wrapper.Wrap(Read("@daily x\n@daily cd /srv/releases/20261120100000 && x\n@daily flock -n /run/x /srv/releases/1/x\n* * * * * sleep 9; y\n* * * * * sleep 5; z\n", false))
	if r := flockWrapper.Wrap(Read("* * * * * sleep 20; flock -n /f x\n* * * * * flock -n /f -c 'sleep 20; /srv/releases/1/y'\n", false)); r.Done != 2 || len(r.Told) != 0 {
		t.Errorf("%+v", r)
	}
	if r.Done != 4 || len(r.Told) != 2 || r.Told[1].Line.Number != 4 || !strings.Contains(r.Told[1].Why, "sleep 9; adlock run") || r.Told[0].Line.Number != 2 || !strings.HasPrefix(r.Told[0].Why, "releases/20261120100000 is another one after each installation") {
		t.Errorf("%+v", r)
	}
}

func TestALineKeepsItsNameWhenItIsMoved(t *testing.T) {
	lines := strings.SplitAfter("@daily rsync a\n@daily rsync b\n@hourly x\n@daily rsync c -v\n@daily x\n@daily tar cf a\n@daily tar xf a\n", "\n")
	want := strings.SplitAfter(wrapper.Wrap(Read(strings.Join(lines, ""), false)).Text, "\n")
	slices.Sort(want)
	rapid.Check(t, func(t *rapid.T) {
		moved := rapid.Permutation(lines).Draw(t, "lines")
		r := wrapper.Wrap(Read(strings.Join(moved, ""), false))
		got := strings.SplitAfter(r.Text, "\n")
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", moved, got, want)
		}
	})
}

func TestTheLimitIsOneAndAHalfPeriodsAndAtLeast15Minutes(t *testing.T) {
	for schedule, want := range map[string]string{
		"0 * * * *": "1h30m", "@hourly": "1h30m", "@daily": "1d12h", "*/20 * * * *": "30m", "0 9-17 * * 1-5": "1h30m", "@weekly": "1w3d12h",
		"*/10 * * * *": "15m", "* * * * *": "15m", "@60": "15m", "@3600": "1h30m", "0 0 1 1 *": "78w1d12h",
	} {
		wrapped, why := wrapOne(t, schedule+" x")
		if !strings.Contains(wrapped, " --expire-after "+want+" -- x") {
			t.Errorf("%s: %s %s, want %s", schedule, wrapped, why, want)
		}
		must.Get(limit.Parse(want))(t)
	}
}

func TestALineGetsALimitOnlyOnRequest(t *testing.T) {
	for asked, want := range map[string]string{"": "", "auto": " --expire-after auto", "90m": " --expire-after 90m"} {
		w := Wrapper{Adlock: "/usr/bin/adlock", Limit: asked}
		wrapsTo(t, w, "@hourly x\n", "@hourly /usr/bin/adlock run --name x-12738659"+want+" -- x\n")
	}
	w := Wrapper{Adlock: "/usr/bin/adlock"}
	if r := w.Wrap(Read("@reboot x\n", false)); r.Done != 1 {
		t.Errorf("what starts at boot has no limit, and is left: %+v", r)
	}
}

func TestWrapKeepsTheCrontabsOwnLimit(t *testing.T) {
	const has, none, run = "ADLOCK_EXPIRE_AFTER=90m\n", "ADLOCK_EXPIRE_AFTER=\n", "@daily /usr/bin/adlock run --name "
	wrapsTo(t, wrapper, has+"@daily x\n"+none+"@daily y z\n",
		has+run+"x-12738659 -- x\n"+none+run+nameOf("y z")+" --expire-after 1d12h -- y z\n")
}

func TestOnlyAPlainCommandIsWrappedWithoutAShell(t *testing.T) {
	for command, want := range map[string]string{
		`x -a 'b c' "d e $HOME" $X ~/y *.z a\ b k=v`: `x -a 'b c' "d e $HOME" $X ~/y *.z a\ b k=v`,
		`x; y`:               `/bin/sh -c 'x; y'`,
		`x >/dev/null`:       `/bin/sh -c 'x >/dev/null'`,
		`x $(date)`:          `/bin/sh -c 'x $(date)'`,
		"x `date`":           "/bin/sh -c 'x `date`'",
		`x "$(date)"`:        `/bin/sh -c 'x "$(date)"'`,
		`x ${Y}`:             `/bin/sh -c 'x ${Y}'`,
		`x $$`:               `/bin/sh -c 'x $$'`,
		`x \`:                `/bin/sh -c 'x \'`,
		`x 'it'\''s' | y`:    `/bin/sh -c 'x '\''it'\''\'\'''\''s'\'' | y'`,
		`A=b x`:              `/bin/sh -c 'A=b x'`,
		`exec x`:             `/bin/sh -c 'exec x'`,
		`x # y`:              `/bin/sh -c 'x # y'`,
		`x é`:                `/bin/sh -c 'x é'`,
		`x %in`:              `x %in`,
		`x \%;%in\%%`:        `/bin/sh -c 'x \%;'%in\%%`,
		`/bin/sh /x`:         `/bin/sh /x`,
		`/x -v `:             `/x -v `,
		"x;\r":               "/bin/sh -c 'x;'\r",
		`x 'unclosed`:        `/bin/sh -c 'x '\''unclosed'`,
		`x -- --name y -- z`: `x -- --name y -- z`,
		"x\ty":               "x\ty",
		`'x'`:                `/bin/sh -c ''\''x'\'''`,
		`x {a,b}`:            `/bin/sh -c 'x {a,b}'`,
		`x !`:                `/bin/sh -c 'x !'`,
	} {
		named, _, _ := strings.Cut(command, "%in")
		wrapsTo(t, wrapper, "@hourly "+command, hourly+nameOf(named)+" --expire-after 1h30m -- "+want)
	}
}

func TestWrapUsesTheShellOfTheCrontab(t *testing.T) {
	for _, c := range [][3]string{
		{"SHELL=/bin/bash\n", "x", "/bin/bash -c 'x'"}, {"SHELL=/bin/sh\n", "x", "x"}, {`SHELL = "/usr/bin/zsh"` + "\n", "x;y", "/usr/bin/zsh -c 'x;y'"},
		{"SHELL=/bin/bash\nSHELL=/bin/dash\n", "x", "/bin/dash -c 'x'"},
	} {
		wrapsTo(t, wrapper, c[0]+"@hourly "+c[1], c[0]+hourly+nameOf(c[1])+" --expire-after 1h30m -- "+c[2])
	}
}

func TestLinesThatAreNotWrappedAreReported(t *testing.T) {
	long := strings.Repeat("x", LongestCommand-len("/usr/bin/adlock run --name "+nameOf(strings.Repeat("x", 800))+" --expire-after 1h30m -- ")-1)
	for text, want := range map[string]string{
		"@reboot x": "starts at boot", "0 0 30 2 * x": "never starts",
		"@daily ID=x WAIT=z y": "dcron", "* * * * * FREQ=2h\tID=x,AFTER=z y": "dcron",
		"@daily : x ADLOCK_EXPIRE_AFTER=2s ; y": "would be lost", "@daily : x ; y": "would be lost",
		"@daily flock -n /f x": "under flock", "@daily /usr/bin/adlock run x": "under adlock", "@daily test -x /y && nice -n5 /usr/bin/setlock -n f x": "under setlock",
		"@daily A=b lockf f x": "under lockf", "@daily sudo -u x flock f y": "under flock", "@daily nice bash -c 'cd /; flock f y'": "under flock", "@daily (flock -n 9 || exit; y) 9>/f": "under flock", "fi": "too short", "@hourly " + long + " é": "998 bytes", "@hourly " + long + "xy": "998 bytes",
	} {
		_, why := wrapOne(t, text)
		if !strings.Contains(why, want) {
			t.Errorf("%.50q is left: %q, want %q", text, why, want)
		}
	}
	if wrapped, why := wrapOne(t, "@hourly "+long); why != "" || len(wrapped) != len("@hourly ")+LongestCommand-1 {
		t.Errorf("a command that just fits: %d bytes, %s", len(wrapped), why)
	}
	for _, shell := range []string{"/bin/csh", "/usr/bin/fish", "bash", "/bin/my sh", "/usr/lib/adlock/shell"} {
		r := wrapper.Wrap(Read("SHELL="+shell+"\n@daily x", false))
		if r.Done != 0 || len(r.Left) != 1 || !strings.Contains(r.Left[0].Why, "SHELL=") {
			t.Errorf("%s: %+v", shell, r)
		}
	}
}

func TestALineThatOnlySeemsToLockOrToBeForDcronIsWrapped(t *testing.T) {
	for _, command := range []string{"rsync -a /var/lib/adlock /b", "apt-get -y install flock", "echo flock", "x # flock", "WAIT=5 y", "PID=5 y"} {
		if wrapped, why := wrapOne(t, "@daily "+command); why != "" || !strings.Contains(wrapped, command) {
			t.Errorf("%s: %s %s", command, wrapped, why)
		}
	}
}

func TestUnwrapKeepsALineThatWasWrittenOrEditedByHand(t *testing.T) {
	wrapped, _ := wrapOne(t, "@hourly rsync -a b c; x\n")
	if back := Unwrap(Read(wrapped, false)); back.Text != "@hourly rsync -a b c; x\n" {
		t.Fatalf("%q", back.Text)
	}
	for _, edit := range [][2]string{
		{"rsync", "backup"}, {"--name", "--verbose --name"}, {" -- ", " "}, {"/usr/bin/adlock", "adlock"}, {"'rsync", "rsync"}, {"x'", "x' y"},
		{"run ", "run  "}, {"-c '", "-c '%"}, {"b c", "'b' c"}, {"/usr/bin/adlock", "/usr/bin/a;adlock"}, {"-- ", "--  "},
		{"--name rsync", "--name rsync-"}, {"--name rsync", "--name rsync-1x"}, {"--name rsync", "--name rsy"}, {"x'\n", "x"}, {"'rsync", "' rsync"}, {"'rsync", "'-n rsync"}, {"/bin/sh", "/bin/bash"},
	} {
		text := strings.Replace(wrapped, edit[0], edit[1], 1)
		if back := Unwrap(Read(text, false)); back.Text != text || back.Done != 0 || len(back.Left) != 1 {
			t.Errorf("%q: %+v", text, back)
		}
	}
	// The helper may have been elsewhere when the line was wrapped.
	if back := Unwrap(Read(strings.Replace(wrapped, "/usr/bin/adlock", "/opt/adlock", 1), false)); back.Text != "@hourly rsync -a b c; x\n" {
		t.Errorf("%+v", back)
	}
	for _, text := range []string{"@daily flock f x", "@reboot x", "fi", "# x"} {
		if back := Unwrap(Read(text, false)); back.Text != text || len(back.Left) != 0 {
			t.Errorf("%q: %+v", text, back)
		}
	}
}

func TestOnlyAPlainFullPathOfAdlockIsAccepted(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr/bin/adlock": true, "/opt/a-b_c.d+e@f/adlock": true, "adlock": false, "/a b/adlock": false, "/a%b/adlock": false, "/a$b/adlock": false, "/usr/bin/other": false, "/é/adlock": false,
	} {
		if w := (Wrapper{Adlock: path}); w.CanStand() != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}

// Unwrap also unwraps jobs that were already wrapped in the fuzzed text, so the text is compared without them.
func FuzzWrap(f *testing.F) {
	for _, text := range oddities {
		f.Add(text, false)
		f.Add(text, true)
		f.Add(wrapper.Wrap(Read(text, true)).Text, true)
		f.Add(flockWrapper.Wrap(Read(text, true)).Text, true)
	}
	f.Fuzz(func(t *testing.T, text string, userColumn bool) {
		lines := Read(text, userColumn)
		want := Unwrap(lines).Text
		for _, w := range []Wrapper{wrapper, flockWrapper} {
			wrapped := w.Wrap(lines)
			after := Read(wrapped.Text, userColumn)
			if back := Unwrap(after); back.Text != want {
				t.Fatalf("%q\n%q came back from\n%q", text, back.Text, wrapped.Text)
			}
			if again := w.Wrap(after); again.Text != wrapped.Text {
				t.Fatalf("%q\n%q is wrapped again:\n%q", text, wrapped.Text, again.Text)
			}
			for i, l := range lines {
				must.Do(t, onlyCommandChanged(&l, &after[i]))
			}
		}
	})
}

// onlyCommandChanged returns an error if anything but the command of the line has changed.
func onlyCommandChanged(was, is *Line) error {
	if was.Kind != is.Kind || was.Head != is.Head || was.Input != is.Input || was.End != is.End {
		return fmt.Errorf("%q became\n%q", was.Text(), is.Text())
	}
	return nil
}

func TestUnguardRestoresRealCrontabsByteForByte(t *testing.T) {
	const shell = "/usr/lib/adlock/shell"
	for name, text := range crontabs(t) {
		r, refused := wrapper.Guard(Read(text, hasUsers(name)), shell)
		if refused != nil {
			t.Errorf("%s:%d %s", name, refused.Line.Number, refused.Why)
			continue
		}
		after := Read(r.Text, hasUsers(name))
		value := ""
		for _, l := range after {
			switch {
			case l.Kind == Variable && l.Name == "SHELL":
				value = l.Value
			case l.Kind == Job && value != shell:
				t.Errorf("%s: SHELL=%s for %q", name, value, l.Text())
			}
		}
		if back := Unguard(after); back.Text != text || back.Done != r.Done {
			t.Errorf("%s is not what it was: %d of %d lines", name, back.Done, r.Done)
		}
	}
}

func TestGuardInsertsItsShellLineOrReportsWhyItCannot(t *testing.T) {
	const shell = "/usr/lib/adlock/shell"
	for text, want := range map[string]string{
		"# jobs\n\nA=b\n@daily x\n":                      "# jobs\n\nSHELL=" + shell + "\nA=b\n@daily x\n",
		"@daily x\n \"SHELL\" = '/bin/bash'\n@daily y":   "SHELL=" + shell + "\n@daily x\n \"ADLOCK_SHELL\" = '/bin/bash'\n@daily y",
		"SHELL=/bin/bash\r\n@daily x\r\n":                "SHELL=" + shell + "\nADLOCK_SHELL=/bin/bash\r\n@daily x\r\n",
		"SHELL=/bin/bash\n@daily : n ; x\n@daily : n; y": "SHELL=" + shell + "\nADLOCK_SHELL=/bin/bash\n@daily : n ; x\n@daily : n; y",
		"SHELL=/bin/bash\n@daily flock -n /run/x y\n":    "SHELL=/bin/bash\n@daily flock -n /run/x y\n",
		"# none\n": "# none\n",
		"@daily adlock run --name n x\n@daily adlock run --name n y\n@daily z":            "SHELL=" + shell + "\n@daily adlock run --name n x\n@daily adlock run --name n y\n@daily z",
		"ADLOCK_NAME=b\n@daily adlock metrics\n@daily y":                                  "SHELL=" + shell + "\nADLOCK_NAME=b\n@daily adlock metrics\n@daily y",
		"ADLOCK_NAME=b\n@daily : ADLOCK_NAME=c ; x\n@daily : ADLOCK_NAME=c ; y\n@daily z": "SHELL=" + shell + "\nADLOCK_NAME=b\n@daily : ADLOCK_NAME=c ; x\n@daily : ADLOCK_NAME=c ; y\n@daily z",
	} {
		r, refused := wrapper.Guard(Read(text, false), shell)
		if refused != nil || r.Text != want || Unguard(Read(r.Text, false)).Text != text {
			t.Errorf("%q: %q, %+v", text, r.Text, refused)
		}
	}
	for text, want := range map[string]string{
		"ADLOCK_SHELL=/bin/bash\nSHELL=" + shell + "\n@daily x\n":                                                                      "ADLOCK_SHELL=/bin/bash\nSHELL=/bin/bash\n@daily x\n",
		"SHELL=/bin/zsh\n@daily x\nSHELL='" + shell + "'\n@daily x\nADLOCK_SHELL=/bin/dash\n@daily x\nSHELL=" + shell + "\n@daily x\n": "SHELL=/bin/zsh\n@daily x\nSHELL='/bin/sh'\n@daily x\nSHELL=/bin/dash\n@daily x\n@daily x\n",
	} {
		if r := Unguard(Read(text, false)); r.Text != want {
			t.Errorf("%q: %q", text, r.Text)
		}
	}
	for text, why := range map[string]string{
		"SHELL=/opt/lib/adlock/shell\n@daily x\n": "is adlock's SHELL already", "ADLOCK_SHELL=/bin/bash\n@daily x\n": "ADLOCK_SHELL is set already", "SHELL=bash\n@daily x\n": "as ADLOCK_SHELL it has to be an absolute path",
		"@daily : n EXPIRE_AFTER=5m ; x\n": "EXPIRE_AFTER=5m: is not understood", "@daily x\nA=b\n@daily x\n": "would have one lock with line 3", "@daily x%1\n@daily x%2\n": "would have one lock with line 2",
		"ADLOCK_NAME=b\n@daily x\n@daily y\n": "would have one lock with line 3, b,", "ADLOCK_NAME=b\n@daily : b ; x\n@daily y\n": "would have one lock with line 2, b,", "ADLOCK_NAME=b\n@daily adlock run x\n@daily y\n": "would have one lock with line 2, b,", "@daily : ADLOCK_WAIT=1m ; x%1\n@daily x%2\n": "would have one lock with line 2, x-",
	} {
		if r, refused := wrapper.Guard(Read(text, false), shell); refused == nil || !strings.HasPrefix(refused.Why, why) || r.Text != "" {
			t.Errorf("%q: %+v, %+v", text, r, refused)
		}
	}
	text := "@daily x &\n@daily /srv/releases/1/x\n@daily : n ; /srv/releases/1/x\nfi\nADLOCK_NAME=b\n@daily /srv/releases/1/x\n"
	if r, refused := wrapper.Guard(Read(text, false), shell); refused != nil || r.Done != 4 || len(r.Told) != 2 || len(r.Left) != 1 {
		t.Errorf("%+v, %+v", r, refused)
	}
	w := Wrapper{Homeless: func(user, home string) bool { return user == "www" && home != "/srv" }}
	for text, is := range map[string]bool{"@daily www x\n": true, "@daily root x\n": false, "HOME=/srv\n@daily www x\n": false, "@daily www flock -n /run/x y\n": false, "@daily www : n ADLOCK_DIR=/x ; y\n": false} {
		if _, refused := w.Guard(Read(text, true), shell); (refused != nil) != is {
			t.Errorf("%q: %+v", text, refused)
		}
		if users := Homeless(Read("SHELL="+shell+"\n"+text, true), w.Homeless); (len(users) > 0) != is {
			t.Errorf("%q: %v", text, users)
		}
	}
	w = Wrapper{Adlock: "/usr/bin/adlock", Filed: func(user, _ string) bool { return user == "joe" }}
	w.Refusal = func(variable func(string) string, _ cronline.Line) error { return w.RunRefusal(variable, nil) }
	w.RunRefusal = func(variable func(string) string, _ []string) error {
		if variable("ADLOCK_WAIT_ELAPSED") != "" && variable("ADLOCK_WAIT") == "" {
			return errors.New("wants a wait")
		}
		return nil
	}
	for user, want := range map[string]int{"joe": 1, "www": 0} { // a settings file sets joe's wait
		lines := Read("ADLOCK_WAIT_ELAPSED=1\n@daily "+user+" x\n", true)
		if r, _ := w.Guard(lines, shell); r.Done != want || w.Wrap(lines).Done != want {
			t.Errorf("%s: %d, %+v", user, r.Done, w.Wrap(lines))
		}
	}
}

// Otherwise the time and memory for a crontab of many variables and jobs would be quadratic.
func TestTheIdentityOfAJobDoesNotGrowWithTheVariables(t *testing.T) {
	longest := 0
	each(Read(strings.Repeat("A=b\n@daily x\nB=b\n@daily x\nC=b\n@daily x\n", 2), false), func(l *Line, v variables) (text, why string) {
		longest = max(longest, len(nameJob(l, v, true).identity))
		return "", ""
	})
	if longest > 32 {
		t.Error(longest)
	}
}
