package lint

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/crontab"
	"adlock/lib/limit"
)

func (f *findings) form(c *Checker, t *tab) {
	isSystem, _ := crontab.Place(t.path)
	if i := slices.IndexFunc(t.lines, func(l crontab.Line) bool { return returns(l) && !ignored.MatchString(l.Text()) }); i >= 0 {
		f.add(i+1, "a carriage return", "line ends with a carriage return: the command gets it, and a blank line with it has Debian's cron refuse the crontab",
			`end lines as Unix does (sed -i 's/\r$//')`)
	}
	for i := range t.lines {
		l := &t.lines[i]
		why := l.Why
		if l.Kind == crontab.Job {
			switch n := l.Length(); {
			case n > crontab.LongestCommand:
				why = strconv.Itoa(n) + " bytes, and cron takes " + strconv.Itoa(crontab.LongestCommand)
			case !strings.HasSuffix(l.End, "\n"):
				why = "the last line has no end"
			case isSystem && c.Unknown != nil && c.Unknown(l.User):
				why = "no such user: " + l.User
			}
		}
		if why != "" {
			f.add(l.Number, "a line that cron refuses", why+", and Debian's cron then runs nothing of the crontab, or never this line", "write it as in crontab(5)")
		}
	}
}

func returns(l crontab.Line) bool {
	return l.End == "\r\n" && (l.Kind == crontab.Blank || l.Kind == crontab.Job && l.Input == "")
}

// unitless reports a limit without a unit that is more than a day if read in minutes, which is hardly what was meant.
func (f *findings) unitless(line int, text string) {
	minutes, err := limit.Parse(text + "m")
	if err != nil || strings.Trim(text, "0123456789") != "" || minutes <= 24*time.Hour {
		return
	}
	seconds := limit.Format(minutes / 60)
	f.add(line, "a limit without a unit", text+" is in minutes: "+limit.Format(minutes), "say "+seconds+", or "+limit.Format(minutes)+" if that is meant")
}
