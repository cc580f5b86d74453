// Package crontab reads crontabs of vixie-cron and its descendants (crontab(5)) into lines that
// keep every byte, finds how often jobs start, puts jobs under locks of adlock, and takes them out again.
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

type Kind int

const (
	Blank Kind = iota
	Comment
	Variable // NAME = VALUE, which holds for the jobs below it
	Job
	Unknown // not understood: Line.Why has the reason
)

// Line is a line of a crontab: a job is Head, Command, Input and End, any other line is Head and End.
type Line struct {
	Number int // 1 for the first
	Kind   Kind
	Why    string // why an Unknown line is not understood

	Name, Value string // of a Variable, without the quotes that cron takes off

	Head    string // what stands before the command: blanks, schedule, user, cron's own flags
	Command string // what cron gives to the shell, with cron's escapes (\%) as they stand
	Input   string // the rest, from the first unescaped % on: cron makes it the job's standard input
	End     string // "\n" or "\r\n"; of a last line without a line feed "\r" or ""

	Schedule Schedule // of a Job
	User     string   // of a Job in a crontab with a user column
}

// Text returns the line as it was read, its end included.
func (l *Line) Text() string { return l.Head + l.Command + l.Input + l.End }

// Read splits any text into lines. userColumn is for crontabs of the system (/etc/crontab, /etc/cron.d).
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

// cutEnd cuts off the end of a line, and a carriage return before it, which cron takes as a part of the command.
func cutEnd(whole string) (body, end string) {
	body = strings.TrimSuffix(strings.TrimSuffix(whole, "\n"), "\r")
	return body, whole[len(body):]
}

// Refuse returns why a text is no crontab, else nil. No crontab has a NUL byte, or more lines that are not understood
// than jobs and lines meant as jobs. An Unknown line after one that ends in a backslash does not count.
func Refuse(lines []Line) error {
	jobs, unknown, first := 0, 0, -1
	for i := range lines {
		switch {
		case strings.Contains(lines[i].Text(), "\x00"):
			return refusal(&lines[i], "a NUL byte")
		case lines[i].Kind == Job || lines[i].Kind == Unknown && meantAsJob.MatchString(lines[i].Head):
			jobs++
		case i > 0 && lines[i-1].continues():
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

// continues reports whether a line that is no comment ends in an unescaped backslash. cron joins no lines, even then.
func (l *Line) continues() bool {
	text := strings.TrimSuffix(l.Text(), l.End)
	return l.Kind != Comment && (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

func refusal(l *Line, why string) error {
	return errors.New("is no crontab: line " + strconv.Itoa(l.Number) + ": " + why)
}

// Misread returns the first job that contradicts userColumn, or nil. Such a job seems to name a user if userColumn
// is false, and to name none if it is true. most is true if more than half of the jobs do so, or one does and all
// others may. If most is false, only a job that begins with a known user counts, and none does if userColumn is true.
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

// namesUser reports whether the first word is a user's name and no command, and a command follows.
func (l *Line) namesUser(isUser, isCommand func(word string) bool) bool {
	words := strings.Fields(l.Command)
	return len(words) > 1 && !isCommand(words[0]) && isUser(words[0]) && (isCommand(words[1]) || startsCommand(words[1]))
}

// misread reports whether a job contradicts userColumn. An unknown first word may be a command that is not installed.
// So it counts as a user only if a command follows, and if it is not itself a program that runs others.
func (l *Line) misread(userColumn bool, isUser, isCommand func(word string) bool) bool {
	if userColumn {
		return isCommand(l.User) && !isUser(l.User)
	}
	if !l.mayNameUser(isCommand) {
		return false
	}
	words := strings.Fields(l.Command)
	return isUser(words[0]) || !cronline.RunsArguments(words[0]) && (startsCommand(words[1]) || words[1][0] == '/' && isCommand(words[1]))
}

func (l *Line) mayNameUser(isCommand func(word string) bool) bool {
	words := strings.Fields(l.Command)
	return len(words) > 1 && isUserName(words[0]) && !cronline.IsShellWord(words[0]) && !isCommand(words[0])
}

// startsCommand reports whether a word certainly begins a command. If so, the word before it is a user, known or not.
func startsCommand(word string) bool {
	return slices.Contains([]string{"if", "[", "[[", "test", "cd", "{", "!"}, word) || slices.Contains(cronline.Lockers, path.Base(word))
}
