package lint

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"adlock/lib/crontab"
	"adlock/lib/limit"
)

// form looks for lines that cron does not read as they were meant, whatever they run.
func (f *findings) form(lines []crontab.Line) {
	returned := false
	for i := range lines {
		l := &lines[i]
		switch continued := i > 0 && lines[i-1].GoesOn(); {
		case continued && l.Kind != crontab.Job && l.Kind != crontab.Variable:
		case l.GoesOn() && i+1 < len(lines):
			f.add(l.Number, "a line that goes on", "cron joins no lines: this one ends here, and the next is one of its own", "write it as one line, or as a script")
		case l.Kind == crontab.Unknown:
			f.add(l.Number, "a line that cron refuses", l.Why+", and Debian's cron then runs nothing of the crontab", "write it as in crontab(5)")
		}
		if strings.HasPrefix(l.End, "\r") && l.Kind != crontab.Comment && !returned {
			returned = true
			f.add(l.Number, "a line that ends in CR LF", "cron takes the CR for a part of the command, of the value, or of a schedule", `end lines in LF alone: sed -i 's/\r$//' FILE`)
		}
		if !strings.HasSuffix(l.End, "\n") && l.Kind == crontab.Job {
			f.add(l.Number, "a last line without an end", "Debian's cron runs nothing of such a crontab, others not this line", "end it with a newline")
		}
		if n := l.Length(); l.Kind == crontab.Job && n > crontab.LongestCommand {
			f.add(l.Number, "a command that is too long", strconv.Itoa(n)+" bytes, and Debian's cron takes "+strconv.Itoa(crontab.LongestCommand)+" and then runs nothing of the crontab",
				"put it into a script")
		}
		if l.Kind == crontab.Variable {
			f.pasted(l.Number, l.Value)
		}
	}
}

var (
	// quotedText matches what a shell takes as it is, and comments.
	quotedText = regexp.MustCompile(`'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(?:^|[ \t;&|])#.*`)
	// typeset matches characters by which word processors and web pages replace others, where the others
	// would mean something to a shell: a dash that begins an option, quotes around a word, a blank.
	typeset = regexp.MustCompile(`(?:^|[\s;&|(=])([\x{2010}-\x{2015}\x{2212}][\pL\pN\x{2010}-\x{2015}\x{2212}]|[\x{201C}-\x{201F}\x{2018}\x{201A}\x{201B}])|([\x{A0}\x{2007}\x{202F}\x{FEFF}])`)
)

// pasted looks for dashes, quotes and blanks that are none to a shell.
func (f *findings) pasted(line int, text string) {
	found := typeset.FindStringSubmatch(quotedText.ReplaceAllString(text, "_"))
	if found == nil {
		return
	}
	character, _ := utf8.DecodeRuneInString(found[1] + found[2])
	meant := map[bool]string{true: "a quote", false: "-"}[character == '\u201a' || character >= '\u2018' && character <= '\u201f']
	if found[2] != "" {
		meant = "a blank"
	}
	f.once(line, "a character of a web page", fmt.Sprintf("%U stands where %s is meant, and is a part of the word to every shell", character, meant), "type it anew")
}

// never reports a schedule with a day that no month has.
func (f *findings) never(l *crontab.Line) {
	if l.Schedule.Longest == 0 && !l.Schedule.Reboot {
		f.add(l.Number, "a date that never comes", l.Schedule.Text+" is no day of any year", "write a day that the month has")
	}
}

// userColumn looks for a line that begins with a user's name in a crontab without a user column,
// where cron takes the name for the command.
func (j *job) userColumn() {
	if j.User != "" || j.IsUser == nil {
		return
	}
	word, _, _ := strings.Cut(j.Command, " ")
	if search, set := j.setting("PATH"); set && j.findIn(word, filepath.SplitList(search)) != "" {
		return
	}
	named := j.NamesUser(j.IsUser, j.isCommand)
	first, _ := crontab.Misread(j.lines[j.at:j.at+1], false, j.IsUser, j.isCommand)
	switch isUser := j.IsUser(word); {
	case named, first != nil && isUser && (j.user != "" || j.misread):
		j.add(j.Number, "a user in a user's crontab", word+" is a user here and no command, and cron takes it for the command", "leave it out; a crontab with users is checked with -u")
	case first != nil && j.misread:
		j.add(j.Number, "a user in a user's crontab", word+" is no command here, and another command stands behind it: cron takes the first for the command",
			"leave it out, or write its full path; a crontab with users is checked with -u")
	}
}

// unitless reports a limit without a unit that is more than a day of minutes, and so was hardly meant
// in minutes.
func (f *findings) unitless(line int, text string) {
	minutes, err := limit.Parse(text + "m")
	if err != nil || strings.Trim(text, "0123456789") != "" || minutes <= 24*time.Hour {
		return
	}
	seconds := limit.Format(minutes / 60)
	f.add(line, "a limit without a unit", text+" is in minutes: "+limit.Format(minutes), "say "+seconds+", or "+limit.Format(minutes)+" if that is meant")
}
