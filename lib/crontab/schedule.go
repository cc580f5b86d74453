package crontab

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/adhocore/gronx"
)

// Schedule is when a job starts.
type Schedule struct {
	Text   string // as in the crontab; blanks between fields are one space
	Reboot bool   // once, when cron starts: the rest is zero

	// The shortest and the longest time between two starts, in a time zone without summer time.
	// Both are 0 if it never starts (30 February).
	Shortest, Longest time.Duration
}

// macros are the names of schedules, in lower case only, as cron knows them.
var macros = map[string][5]string{
	"@yearly": {"0", "0", "1", "1", "*"}, "@annually": {"0", "0", "1", "1", "*"},
	"@monthly": {"0", "0", "1", "*", "*"}, "@weekly": {"0", "0", "*", "*", "0"},
	"@daily": {"0", "0", "*", "*", "*"}, "@midnight": {"0", "0", "*", "*", "*"},
	"@hourly": {"0", "*", "*", "*", "*"}, "@every_minute": {"*", "*", "*", "*", "*"}, // FreeBSD
}

// named is a schedule that is one word: a macro, @reboot, or FreeBSD's @SECONDS,
// which counts from the end of a run.
func named(word string) (schedule Schedule, why string) {
	if word == "@reboot" {
		return Schedule{Text: word, Reboot: true}, ""
	}
	if word == "@every_second" { // FreeBSD
		return Schedule{Text: word, Shortest: time.Second, Longest: time.Second}, ""
	}
	if fields, known := macros[word]; known {
		schedule, why = scheduleOf(fields)
		schedule.Text = word
		return schedule, why
	}
	if seconds, err := strconv.ParseUint(word[1:], 10, 31); err == nil && seconds > 0 {
		period := time.Duration(seconds) * time.Second
		return Schedule{Text: word, Shortest: period, Longest: period}, ""
	}
	return Schedule{}, "unknown schedule " + strconv.Quote(word)
}

// columns are the five fields. gronx has one for seconds before them.
var columns = [5]string{"minute", "hour", "day of month", "month", "day of week"}

// element is one element of a field in crontab(5); gronx would take more.
var element = regexp.MustCompile(`^(\*|(\d+|[A-Za-z]{3})(-(\d+|[A-Za-z]{3}))?)(/\d+)?$`)

func scheduleOf(fields [5]string) (schedule Schedule, why string) {
	segments := []string{"0"}
	for i, field := range fields {
		plain, ok := segmentOf(field, i)
		if !ok {
			return Schedule{}, "not understood as the " + columns[i] + " of a schedule: " + strconv.Quote(field) + upward(field, i)
		}
		segments = append(segments, plain)
	}
	schedule = gaps(segments)
	schedule.Text = strings.Join(fields[:], " ")
	return schedule, ""
}

var (
	downward = regexp.MustCompile(`^(\d+)-(\d+)$`)
	lowest   = [5]string{"0", "0", "1", "1", "0"}
	highest  = [5]string{"59", "23", "31", "12", "6"}
)

// upward is the advice for a range that goes down, such as 22-4 (hours): two ranges that cron
// accepts. It is "" for any other field.
func upward(field string, column int) string {
	ends := downward.FindStringSubmatch(field)
	if ends == nil || !inRange(ends[1]+"-"+highest[column], column) || !inRange(lowest[column]+"-"+ends[2], column) {
		return ""
	}
	return ", as a range goes up: " + ends[1] + "-" + highest[column] + "," + lowest[column] + "-" + ends[2]
}

func inRange(field string, column int) bool {
	_, ok := segmentOf(field, column)
	return ok
}

// segmentOf returns a field in the form that gronx takes.
func segmentOf(field string, column int) (segment string, ok bool) {
	var elements []string
	for text := range strings.SplitSeq(field, ",") {
		plain, ok := elementOf(withoutChance(text, column), column)
		if !ok {
			return "", false
		}
		elements = append(elements, plain)
	}
	return strings.Join(elements, ","), true
}

// elementOf is an element with numbers in place of names. The part before a step is checked alone
// too: gronx would accept 61/5 as a minute.
func elementOf(text string, column int) (plain string, ok bool) {
	if !element.MatchString(text) {
		return "", false
	}
	segments, err := gronx.Segments(text + " * * * *")
	if err != nil {
		return "", false
	}
	values, _, _ := strings.Cut(segments[1], "/")
	var c gronx.SegmentChecker
	_, err = c.CheckDue(values, column+1)
	if err == nil {
		_, err = c.CheckDue(segments[1], column+1)
	}
	return segments[1], err == nil
}

// withoutChance replaces a random value by the lowest: cronie and OpenBSD choose from LOW~HIGH
// once, when the crontab is read, so the time between two starts is the same in any case. ~/N is
// every N-th value from a random one on.
func withoutChance(text string, column int) string {
	low, rest, random := strings.Cut(text, "~")
	_, step, stepped := strings.Cut(rest, "/")
	switch {
	case !random:
		return text
	case stepped:
		return "*/" + step
	case low == "":
		return lowest[column]
	}
	return low
}

const day = 24 * time.Hour

// gaps finds the times between starts: the times of day are the same on each day with a start, and
// these days repeat after 28 years.
func gaps(segments []string) Schedule {
	var s Schedule
	times := startsOfDay(segments)
	shortest, longest := gapsOfDays(segments)
	if len(times) == 0 || longest == 0 {
		return s
	}
	for i, at := range times[1:] {
		s.add(at - times[i])
	}
	overnight := times[0] - times[len(times)-1]
	s.add(shortest + overnight)
	s.add(longest + overnight)
	return s
}

func (s *Schedule) add(gap time.Duration) {
	if s.Shortest == 0 || gap < s.Shortest {
		s.Shortest = gap
	}
	s.Longest = max(s.Longest, gap)
}

// aDay is the first day of the 28 years. It begins a leap year, and a month of 31 days.
var aDay = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// matching tells which of count times match a field. The first time is aDay; next makes each from
// the one before.
func matching(segments []string, column, count int, next func(time.Time) time.Time) []bool {
	var c gronx.SegmentChecker
	matches := make([]bool, count)
	at := aDay
	for i := range matches {
		c.SetRef(at)
		matches[i], _ = c.CheckDue(segments[column], column) // no error: segmentOf has checked the field
		at = next(at)
	}
	return matches
}

func later(d time.Duration) func(time.Time) time.Time {
	return func(at time.Time) time.Time { return at.Add(d) }
}

func monthLater(at time.Time) time.Time { return at.AddDate(0, 1, 0) }

// startsOfDay are the times of day at which the job starts.
func startsOfDay(segments []string) []time.Duration {
	minutes, hours := matching(segments, 1, 60, later(time.Minute)), matching(segments, 2, 24, later(time.Hour))
	var times []time.Duration
	for at := time.Duration(0); at < day; at += time.Minute {
		if hours[at/time.Hour] && minutes[at%time.Hour/time.Minute] {
			times = append(times, at)
		}
	}
	return times
}

// date is a day of the calendar.
type date struct{ day, month int }

// calendar is the 28 years from aDay on.
var calendar = sync.OnceValue(func() (dates []date) {
	for at := aDay; at.Year() < aDay.Year()+28; at = at.Add(day) {
		dates = append(dates, date{at.Day(), int(at.Month())})
	}
	return dates
})

// gapsOfDays returns the shortest and the longest time from a day with a start to the next such
// day; 0 if there are not two. If neither the day of the month nor the day of the week begins with
// a star, a day needs to match only one of them (crontab(5)).
func gapsOfDays(segments []string) (shortest, longest time.Duration) {
	days, months, weekdays := matching(segments, 3, 31, later(day)), matching(segments, 4, 12, monthLater), matching(segments, 5, 7, later(day))
	both := segments[3][0] == '*' || segments[5][0] == '*'
	s, last := Schedule{}, -1
	for i, at := range calendar() {
		ofMonth, ofWeek := days[at.day-1], weekdays[i%7]
		if !months[at.month-1] || both && !(ofMonth && ofWeek) || !ofMonth && !ofWeek {
			continue
		}
		if last >= 0 {
			s.add(time.Duration(i-last) * day)
		}
		last = i
	}
	return s.Shortest, s.Longest
}
