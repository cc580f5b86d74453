package crontab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"adlock/lib/limit"
	"adlock/test/support/must"
)

// crontabs are the files of testdata: name and text.
func crontabs(t testing.TB) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*")
	if err != nil || len(paths) < 29 {
		t.Fatal(paths, err)
	}
	all := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, ".md") || strings.HasSuffix(path, "/fuzz") {
			continue
		}
		text := must.Get(os.ReadFile(path))(t)
		all[filepath.Base(path)] = string(text)
	}
	return all
}

// hasUsers tells which files of testdata have a user column.
func hasUsers(name string) bool {
	switch name {
	case "bsd-minix", "bsd-openbsd", "man-crontab5", "odd-anacrontab":
		return false
	}
	return true
}

// one is the only line of a text.
func one(t testing.TB, text string, userColumn bool) Line {
	t.Helper()
	lines := Read(text, userColumn)
	if len(lines) != 1 {
		t.Fatalf("%q has %d lines", text, len(lines))
	}
	return lines[0]
}

func TestALineIsSplitAsCronSplitsIt(t *testing.T) {
	for _, c := range []struct {
		text                               string
		userColumn                         bool
		schedule, user, head, cmd, in, end string
	}{
		{"* * * * * true", false, "* * * * *", "", "* * * * * ", "true", "", ""},
		{" \t*/5\t*  * * *\t true -v \n", false, "*/5 * * * *", "", " \t*/5\t*  * * *\t ", "true -v ", "", "\n"},
		{"-*/15 * * * *   root  test -x /a\r\n", true, "*/15 * * * *", "root", "-*/15 * * * *   root  ", "test -x /a", "", "\r\n"},
		{"@hourly www-data:www x%in%put\n", true, "@hourly", "www-data:www", "@hourly www-data:www ", "x", "%in%put", "\n"},
		{`0 9 * * * -n sleep $((RANDOM \% 4096)) %`, false, "0 9 * * *", "", "0 9 * * * -n ", `sleep $((RANDOM \% 4096)) `, "%", ""},
		{`0 9 * * * root -nq x \\%y`, true, "0 9 * * *", "root", "0 9 * * * root -nq ", `x \\`, "%y", ""},
		{"@600 -x", false, "@600", "", "@600 ", "-x", "", ""},
		{"~ 0~5 * * 7 a=b c", false, "~ 0~5 * * 7", "", "~ 0~5 * * 7 ", "a=b c", "", ""},
	} {
		l := one(t, c.text, c.userColumn)
		got := []string{l.Schedule.Text, l.User, l.Head, l.Command, l.Input, l.End}
		want := []string{c.schedule, c.user, c.head, c.cmd, c.in, c.end}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") || l.Kind != Job {
			t.Errorf("%q: kind %d (%s), %q, want %q", c.text, l.Kind, l.Why, got, want)
		}
	}
}

func TestALineIsClassifiedByItsForm(t *testing.T) {
	for text, want := range map[string]Kind{
		"": Blank, " \t": Blank, "\r\n": Blank, "#x": Comment, "  # * * * * * x": Comment,
		"A=b": Variable, ` "A" = 'b c' `: Variable, "A_1=": Variable, "MAILTO = ": Variable, "MY-VAR=1": Variable, "'a b' =c": Variable, "@daily = x": Variable, "=x": Unknown,
		"*/5 * * * * A=b": Job, "@DAILY x": Unknown, "* * * * * * x": Unknown, "@daily *x": Unknown, "5 4 * * sun-7,Mon x": Job, "5 4 * * Sun x": Job, "0 0 30 feb * x": Job,
		"* * * * *": Unknown, "@daily": Unknown, "@dialy x": Unknown, "60 * * * * x": Unknown, "1,60 * * * * x": Unknown, "61/5 * * * * x": Unknown,
		"* 24 * * * x": Unknown, "* * 0 * * x": Unknown, "* * * 13 * x": Unknown, "* * * * 8 x": Unknown, "*/0 * * * * x": Unknown,
		"? 6 * * * x": Unknown, "* * L * * x": Unknown, "* * * * 5#2 x": Unknown, "5- * * * * x": Unknown, "1,,2 * * * * x": Unknown, ", * * * * x": Unknown,
		"6-5 * * * * x": Unknown, "* * * * * %x": Unknown, "@monthly 45 x": Unknown, "- * * * * x": Unknown, "-": Unknown, "@": Unknown, "@0 x": Unknown,
		"@99999999999 x": Unknown, "echo hello, this is a script": Unknown, "fi": Unknown, "[Unit]": Unknown, "\x00": Unknown,
	} {
		lines := Read(text, false)
		if text == "" {
			if len(lines) != 0 {
				t.Errorf("an empty text has %d lines", len(lines))
			}
			continue
		}
		if got := lines[0]; got.Kind != want || (want == Unknown) != (got.Why != "") {
			t.Errorf("%q is of kind %d (%s), want %d", text, got.Kind, got.Why, want)
		}
	}
}

func TestAUserColumnMustHoldAUserName(t *testing.T) {
	for text, want := range map[string]Kind{
		"@daily root x": Job, "@daily www-data:www-data/daemon x": Job, `@daily DOMAIN+user x`: Job, "@daily _ntp x": Job, "@daily henry@example.org x": Job,
		"@daily /bin/x y": Unknown, "@daily 45 x": Unknown, "@daily root": Unknown, "@daily A=b x": Unknown, "@daily [ -x /y ]": Unknown, "@daily $HOME/x y": Unknown,
	} {
		if got := one(t, text, true); got.Kind != want {
			t.Errorf("%q is of kind %d (%s), want %d", text, got.Kind, got.Why, want)
		}
	}
}

func TestAScheduleGivesTheShortestTimeBetweenStarts(t *testing.T) {
	for text, want := range map[string]string{
		"* * * * *": "1m", "*/5 * * * *": "5m", "5-55/10 * * * *": "10m", "09,39 * * * *": "30m",
		"*/7 * * * *": "4m", "0 9-17 * * 1-5": "1h", "57 0 * * 0": "1w", "0 0 * * 7": "1w", "5 4 * * sun": "1w",
		"0 0 * * 4-7": "1d", "0 0 1 * *": "4w", "0 0 1 * 1": "1d", "0 0 29 2 *": "208w5d", "0 0 29 2 */7": "1461w", "0 0 30 2 *": "0s",
		"1,31 0-5 * * *": "30m", "23 0-23/2 * * *": "2h", "59 23 * * *": "1d", "0 0,1 * * *": "1h",
		"@hourly": "1h", "@daily": "1d", "@midnight": "1d", "@weekly": "1w", "@yearly": "52w1d", "@every_minute": "1m",
		"@600": "10m", "@every_second": "1s", "~ * * * *": "1h", "0~30 2 * * *": "1d", "~/15 * * * *": "15m", "20~40/10 * * * *": "10m", "~ ~ ~ ~ ~": "1d",
		// These were compared with a search of 28 years, midnight by midnight.
		"5,6 3,4 * * *": "1m", "59 23 * * 1,3": "2d", "0 0 1,9 * 2": "1d",
		"0 0 */9 * 2": "3w", "0 0 3-9 * */3": "1d", "0 0 * feb 0-7/2": "1d", "0 0 31 * *": "4w3d",
		"*/2 * * jan-mar *": "2m", "5-59/20 * * * *": "20m", "0 0 */2 * *": "1d", "0 0 */9223372036854775807 * *": "4w", "1-59/99999999999999999999 * * * *": "1h",
	} {
		var s Schedule
		if l := one(t, text+" x", false); l.Kind == Job {
			s = l.Schedule
		} else {
			t.Errorf("%s: %s", text, l.Why)
		}
		if got := limit.Format(s.Shortest); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if l := one(t, "@reboot x", false); !l.Schedule.Reboot || l.Schedule.Shortest != 0 {
		t.Errorf("@reboot: %+v", l.Schedule)
	}
}

// together is the text of a crontab of these lines.
func together(lines []Line) (text string) {
	for i := range lines {
		text += lines[i].Text()
	}
	return text
}

func TestTextThatIsNoCrontabIsRefusedWithALineNumber(t *testing.T) {
	for text, want := range map[string]string{
		"#!/bin/sh\nA=b\nif x; then\n\ty\nfi\n":     `line 3: neither a comment nor a variable, and too short for a schedule of five fields and a command`,
		"[Unit]\nDescription=x\n":                   `line 1: neither a comment nor a variable, and too short for a schedule of five fields and a command`,
		"@every_5m x\ny\nz\n":                       `line 2: neither a comment nor a variable, and too short for a schedule of five fields and a command`,
		"A=b\n1\t5\tcron.daily\t\tnice run-parts x": `line 2: not understood as the day of month of a schedule: "cron.daily"`,
		"* * * * * x\n\x7fELF\x00\n":                `line 2: a NUL byte`,
		"cat <<EOF | crontab -\n@daily x\nEOF\n":    `line 1: not understood as the minute of a schedule: "cat"`,
	} {
		if err := Refuse(Read(text, false)); err == nil || err.Error() != "is no crontab: "+want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", "\n", "# x", "A=b\n", "@daily x\nfi\n", "@every_5m x\n", "0 22-4 * * * x\n", "*/5 * * 13 1 x", "@daily x \\\n -a \\\n -b\n"} {
		must.Do(t, Refuse(Read(text, false)))
	}
}

func TestAMisreadUserColumnIsDetected(t *testing.T) {
	users := func(word string) bool { return word == "root" || word == "mail" }
	commands := func(word string) bool { return slices.Contains([]string{"rsync", "mail", "/bin/a"}, word) }
	for _, c := range []struct {
		text       string
		userColumn bool
		misread    bool
	}{
		{"@daily root\tx\n", false, true}, {"@daily root x\n", true, false}, {"@daily rsync -a b\n", true, true}, {"@daily rsync -a b\n", false, false},
		{"@daily mail -s x\n", false, false}, {"@daily mail x\n", true, false}, {"@daily root\n", false, false}, {"@daily x\n@daily root x\n", false, false}, {"@daily x\n@daily root x\n@daily root y\n", false, true}, {"@daily nobody x\n", true, false},
		{"@daily munin if [ -x /a ]; then /a; fi\n@daily munin test -x /a && /a\n@daily munin x=y z\n", false, true},
		{"@daily munin if [ -x /a ]; then /a; fi\n", true, false},
		{"@daily if [ -x /a ]; then /a; fi\n", false, false}, {"@daily cd test && /a\n", false, false}, {"@daily while test -e /a; do /b; done\n@daily if ! /a; then /b; fi\n", false, false}, {"@daily rsync if\n@daily rsync test a\n", false, false}, {"@daily /opt/munin test x\n", false, false},
		{"@daily rsync a\n@daily rsync b\n@daily root rsync c\n", false, true}, {"@daily rsync a\n@daily rsync b\n@daily root c\n", false, false}, {"@daily rsync a\n@daily root rsync\n@daily rsync root rsync", false, true},
		{"@daily dumper flock -n /d x\n@daily dumper /bin/a\n", false, true}, {"@daily dumper /bin/a\n", true, false}, {"@daily dumper /bin/none\n", false, false}, {"@daily dumper /bin/a\n@daily dumper /bin/none\n", false, true}, {"@daily rsync a\n@daily dumper /bin/a\n", false, false},
		{"@daily /opt/dumper /bin/a\n", false, false}, {"@daily chronic /bin/a\n", false, false}, {"@daily python3.11 /bin/a\n", false, false}, {"@daily setlock /d /bin/a\n@daily nice flock -n /d x\n", false, false}, {"@daily A=b /bin/a\n", false, false},
	} {
		if got, _ := Misread(Read(c.text, c.userColumn), c.userColumn, users, commands); (got != nil) != c.misread {
			t.Errorf("%q with a user column: %t: %v", c.text, c.userColumn, got)
		}
	}
}

// oddities are short texts with much unusual syntax, for the fuzz tests.
var oddities = []string{
	"A = 'b'\n#c\n\n-*/5 1-3,6 * jan sun root x\\'y;%\\\\%z\r\n", "@daily /bin/sh -c 'x'", "SHELL=/bin/ksh\n@reboot x\n@600 -n y",
	"- @daily \x00'", "@ \r", "-", "@daily root 'it'\\''s' | flock f x", "1 5\tcron.daily\t\tnice x", "@daily root A=b cd x; nice flock -xnw .5 -E3 -- \"$HOME/f #\" y >z | flock -s g\\%1 -c 'u\\%v' # w%z\n",
	"~ 0~9 * * 7 A=b {,}x \"$(y)\" \\% #",
}

func FuzzParse(f *testing.F) {
	for _, text := range oddities {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, userColumn bool) {
		lines := Read(text, userColumn)
		if got := together(lines); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		_ = Refuse(lines)
		for i, l := range lines {
			if l.Number != i+1 || (l.Kind == Unknown) != (l.Why != "") || l.Kind != Job && l.Command+l.Input != "" {
				t.Fatalf("%q: %+v", text, l)
			}
		}
	})
}

func TestARefusedRangeIsReportedWithItsCureIfKnown(t *testing.T) {
	for schedule, want := range map[string]string{
		"0 22-4 * * *": `the hour of a schedule: "22-4", as a range goes up: 22-23,0-4`, "50-9 * * * *": `"50-9", as a range goes up: 50-59,0-9`,
		"0 0 * * 5-1": `"5-1", as a range goes up: 5-6,0-1`, "0 0 * 11-2 *": `"11-2", as a range goes up: 11-12,1-2`,
		"0 25-4 * * *": `"25-4"`, "0 22-4/2 * * *": `"22-4/2"`,
		"0/15 * * * *": `"0/15", as a step wants a range: 0-59/15`, "0 0 * * 1/2": `"1/2", as a step wants a range: 1-6/2`, "60/5 * * * *": `"60/5"`,
	} {
		if l := one(t, schedule+" x", false); l.Kind != Unknown || !strings.HasSuffix(l.Why, want) {
			t.Errorf("%s: %s, want %s", schedule, l.Why, want)
		}
	}
}

func TestAReasonIsGivenForAFileThatCronNeverReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	must.Do(t, os.WriteFile(path, nil, 0o644))
	for _, c := range []struct {
		name     string
		mode     os.FileMode
		isDebian bool
		wrong    bool
	}{
		{"job_a-1", 0o644, true, false}, {"job.cron", 0o644, true, true}, {"job.cron", 0o644, false, false}, {"job", 0o664, false, true}, {"job", 0o646, true, true}, {"job", 0o600, true, false},
	} {
		must.Do(t, os.Chmod(path, c.mode))
		info := must.Get(os.Stat(path))(t)
		owner, _ := neverRead(info, "job", false)
		if reason, cure := neverRead(info, c.name, c.isDebian); (reason != "") != (c.wrong || owner != "") || (reason == "") != (cure == "") {
			t.Errorf("%+v: %q, %q", c, reason, cure)
		}
	}
	if reason, _ := Unread(path); reason != "" {
		t.Errorf("elsewhere: %s", reason)
	}
}

func TestSystemListsEachCrontabOnceAndNoCopies(t *testing.T) {
	root := t.TempDir()
	want := []string{}
	for _, path := range []string{"/etc/crontab", "/etc/cron.d/a", "/etc/cron.d/b.c", "/var/spool/cron/crontabs/root"} {
		want = append(want, root+path)
	}
	for _, path := range append(want, root+"/etc/cron.d/.placeholder", root+"/etc/cron.d/a~", root+"/etc/cron.d/a.dpkg-old", root+"/etc/cron.d/a.rpmsave", root+"/var/spool/cron/atjobs/a1") {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, nil, 0o644))
	}
	must.Do(t, os.Symlink("../var/spool/cron/crontabs", root+"/etc/crontabs"))
	if got, failed := System(root); !slices.Equal(got, want) || len(failed) > 0 {
		t.Errorf("%q, %v, want %q", got, failed, want)
	}
	if got, failed := System(t.TempDir()); len(got)+len(failed) > 0 {
		t.Errorf("nothing there: %q, %v", got, failed)
	}
}
