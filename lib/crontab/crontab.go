// Package crontab reads crontabs of vixie-cron and its descendants (crontab(5)) into lines that
// keep every byte, finds when jobs start, puts them under `adlock run`, and takes them out again.
package crontab

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"adlock/lib/cronline"
)

// DefaultPath is PATH in a crontab that does not set it (crontab(5) of Debian and of cronie).
const DefaultPath = "/usr/bin:/bin"

// Kind is what a line is.
type Kind int

const (
	Blank Kind = iota
	Comment
	Variable // NAME = VALUE, which holds for the jobs below it
	Job
	Unknown // Line.Why says what was expected
)

// Line is one line: of a job Head, Command, Input and End, of any other kind Head and End.
type Line struct {
	Number int // 1 for the first
	Kind   Kind
	Why    string // of an Unknown: why it is not understood

	Name, Value string // of a Variable, without the quotes that cron takes off

	Head    string // blanks, schedule, user, cron's own flags
	Command string // what cron gives to the shell, with cron's escapes (\%) as they stand
	Input   string // what it gives to the job as standard input: from the first unescaped % on
	End     string // "\n", "\r\n", or "" for a last line that has none

	Schedule Schedule // of a Job
	User     string   // of a Job in a crontab with a user column
}

// Text is the line as it was read, its end included.
func (l *Line) Text() string { return l.Head + l.Command + l.Input + l.End }

// Read reads any text. Crontabs of the system (/etc/crontab, /etc/cron.d) have a user column.
func Read(text string, userColumn bool) []Line {
	var lines []Line
	for whole := range strings.Lines(text) {
		body, end := cutEnd(whole)
		line := lineOf(body, userColumn)
		line.Number, line.End = len(lines)+1, end
		lines = append(lines, line)
	}
	return lines
}

// cutEnd: to cron a carriage return is part of the command; here it stays last behind a new one.
func cutEnd(whole string) (body, end string) {
	body = strings.TrimSuffix(strings.TrimSuffix(whole, "\n"), "\r")
	return body, whole[len(body):]
}

// Refuse returns why a text is no crontab; nil: it is one, with at least as many jobs, or lines meant as
// jobs, as lines that are not understood. A line after one that ends in a backslash does not count.
func Refuse(lines []Line) error {
	jobs, unknown, first := 0, 0, -1
	for i := range lines {
		switch {
		case strings.Contains(lines[i].Text(), "\x00"):
			return refusal(&lines[i], "a NUL byte")
		case lines[i].Kind == Job || lines[i].Kind == Unknown && meantAsJob.MatchString(lines[i].Head):
			jobs++
		case i > 0 && lines[i-1].GoesOn():
		case lines[i].Kind == Unknown:
			if unknown++; first < 0 {
				first = i
			}
		}
	}
	if unknown <= jobs {
		return nil
	}
	return refusal(&lines[first], lines[first].Why)
}

var meantAsJob = regexp.MustCompile(`^[ \t]*(@every\w*|([\d*][\d*/,~-]*[ \t]+){3}\S+[ \t]+\S+)[ \t]+\S`)

// GoesOn reports whether a line ends in a backslash. cron joins no lines.
func (l *Line) GoesOn() bool {
	text := strings.TrimSuffix(l.Text(), l.End)
	return l.Kind != Comment && (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

func refusal(l *Line, why string) error {
	return errors.New("is no crontab: line " + strconv.Itoa(l.Number) + ": " + why)
}

// Misread returns the first job that shows a user column where none was expected, or none where one
// was; nil: none. most is whether most jobs show that, or one does and each other may be misread
// too. If not, a job counts only if it begins with a user (namesUser).
func Misread(lines []Line, userColumn bool, isUser, isCommand func(word string) bool) (first *Line, most bool) {
	jobs, misread, maybe := 0, 0, 0
	var named *Line
	for i := range lines {
		l := &lines[i]
		if l.Kind != Job {
			continue
		}
		jobs++
		if !userColumn && l.mayNameUser(isCommand) {
			maybe++
		}
		if !l.misread(userColumn, isUser, isCommand) {
			continue
		}
		if misread++; first == nil {
			first = l
		}
		if named == nil && !userColumn && l.namesUser(isUser, isCommand) {
			named = l
		}
	}
	if most = 2*misread > jobs || misread > 0 && maybe == jobs; most {
		return first, true
	}
	return named, false
}

// namesUser: the first word is the name of a user, not of a command, and a command follows.
func (l *Line) namesUser(isUser, isCommand func(word string) bool) bool {
	words := strings.Fields(l.Command)
	return len(words) > 1 && !isCommand(words[0]) && isUser(words[0]) && (isCommand(words[1]) || startsCommand(words[1]))
}

// misread: a first word may be a command that is not installed, alone or if it starts others.
func (l *Line) misread(userColumn bool, isUser, isCommand func(word string) bool) bool {
	if userColumn {
		return isCommand(l.User) && !isUser(l.User)
	}
	if !l.mayNameUser(isCommand) {
		return false
	}
	words := strings.Fields(l.Command)
	return isUser(words[0]) || !cronline.Starts(words[0]) && (startsCommand(words[1]) || words[1][0] == '/' && isCommand(words[1]))
}

func (l *Line) mayNameUser(isCommand func(word string) bool) bool {
	words := strings.Fields(l.Command)
	return len(words) > 1 && isUserName(words[0]) && !cronline.IsShellWord(words[0]) && !isCommand(words[0])
}

// startsCommand: the word is no argument, so the one before it is a user, if unknown to this machine.
func startsCommand(word string) bool {
	return slices.Contains([]string{"if", "[", "[[", "test", "cd", "{", "!"}, word) || slices.Contains(cronline.Lockers, path.Base(word))
}
