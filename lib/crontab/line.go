package crontab

import (
	"regexp"
	"strconv"
	"strings"
)

const blanks = " \t"

// variable matches a line NAME = VALUE. cron tries this form first, with any NAME (vixie-cron's load_env).
var variable = regexp.MustCompile(`^[ \t]*("[^"=]+"|'[^'=]+'|[^\s"'=][^\s=]*)[ \t]*=[ \t]*(.*?)[ \t]*$`)

func lineOf(body string, userColumn bool) Line {
	text := strings.Trim(body, blanks+"\r")
	switch {
	case text == "":
		return Line{Kind: Blank, Head: body}
	case text[0] == '#':
		return Line{Kind: Comment, Head: body}
	}
	if found := variable.FindStringSubmatch(body); found != nil {
		return Line{Kind: Variable, Head: body, Name: unquoted(found[1]), Value: unquoted(found[2])}
	}
	return jobOf(body, userColumn)
}

func unquoted(text string) string {
	last := len(text) - 1
	if last > 0 && (text[0] == '"' || text[0] == '\'') && text[last] == text[0] {
		return text[1:last]
	}
	return text
}

type scanner struct {
	line string
	at   int
}

func (s *scanner) word() string {
	s.skip()
	rest := s.line[s.at:]
	end := strings.IndexAny(rest, blanks)
	if end < 0 {
		end = len(rest)
	}
	s.at += end
	s.skip()
	return rest[:end]
}

func (s *scanner) skip() {
	s.at = len(s.line) - len(strings.TrimLeft(s.line[s.at:], blanks))
}

func jobOf(body string, userColumn bool) Line {
	unknown := func(why string) Line { return Line{Kind: Unknown, Head: body, Why: why} }
	s := scanner{line: body}
	l := Line{Kind: Job}
	var why string
	if l.Schedule, why = s.schedule(); why != "" {
		return unknown(why)
	}
	if userColumn {
		if l.User = s.word(); !isUserName(l.User) {
			return unknown("no user stands where one should: " + strconv.Quote(l.User))
		}
	}
	s.flags()
	l.Head = body[:s.at]
	l.Command, l.Input = cutInput(body[s.at:])
	if why := noCommand(l.Command); why != "" {
		return unknown(why)
	}
	return l
}

func (l *Line) with(text string) *Line {
	job := jobOf(strings.TrimSuffix(text, l.End), l.User != "")
	job.End = l.End
	return &job
}

// schedule reads a schedule. A minus sign before it tells cronie and SUSE's cron not to log to syslog.
func (s *scanner) schedule() (schedule Schedule, why string) {
	s.skip()
	if rest := s.line[s.at:]; len(rest) > 1 && rest[0] == '-' && !strings.ContainsAny(rest[1:2], blanks) {
		s.at++
	}
	if s.line[s.at] == '@' {
		return named(s.word())
	}
	var fields [5]string
	for i := range fields {
		if fields[i] = s.word(); fields[i] == "" {
			return Schedule{}, "neither a comment nor a variable, and too short for a schedule of five fields and a command"
		}
	}
	return scheduleOf(fields)
}

// flags skips the flags of OpenBSD and FreeBSD, which mean no mail after a success, no log, and one run at a time.
func (s *scanner) flags() {
	for {
		before := s.at
		if word := s.word(); len(word) < 2 || word[0] != '-' || strings.Trim(word[1:], "nqs") != "" {
			s.at = before
			return
		}
	}
}

// isUserName reports whether a word may be a user, with a login class or a group after it on the BSDs.
func isUserName(word string) bool {
	return word != "" && !strings.ContainsAny(word, "=$%\"'`;&|<>()[]{}*?!#\\,") && word[0] != '-' && word[0] != '/' &&
		word[0] != '.' && strings.Trim(word, "0123456789") != ""
}

// noCommand returns why a text is no command; "" if it is one. A number would be a column of an anacrontab. vixie-cron
// itself refuses a sixth star, and reads "@daily = x" as a variable.
func noCommand(text string) (why string) {
	text = strings.Trim(text, blanks+"\r")
	first := text
	if end := strings.IndexAny(text, blanks); end >= 0 {
		first = text[:end]
	}
	switch {
	case text == "":
		return "a schedule without a command"
	case strings.Trim(first, "0123456789") == "" || text[0] == '*' || text[0] == '=':
		return "this stands where the command should: " + strconv.Quote(first)
	}
	return ""
}

// cutInput cuts at the first unescaped %, as cron does. In `\\%`, the % is unescaped.
func cutInput(text string) (command, input string) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '%':
			return text[:i], text[i:]
		}
	}
	return text, ""
}
