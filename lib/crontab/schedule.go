package crontab

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

type Schedule struct {
	Text   string // as in the crontab; blanks between fields are one space
	Reboot bool   // the job starts once, when cron starts; Shortest is 0

	Shortest time.Duration // shortest time between starts, without summer time; 0 if the job never starts (30 February)
}

// macros are in lower case only, as cron knows them.
var macros = map[string][5]string{
	"@yearly": {"0", "0", "1", "1", "*"}, "@annually": {"0", "0", "1", "1", "*"},
	"@monthly": {"0", "0", "1", "*", "*"}, "@weekly": {"0", "0", "*", "*", "0"},
	"@daily": {"0", "0", "*", "*", "*"}, "@midnight": {"0", "0", "*", "*", "*"},
	"@hourly": {"0", "*", "*", "*", "*"}, "@every_minute": {"*", "*", "*", "*", "*"}, // FreeBSD
}

// named returns the schedule of @reboot, of a macro, or of FreeBSD's @SECONDS, which counts from the end of a run.
func named(word string) (schedule Schedule, why string) {
	if word == "@reboot" {
		return Schedule{Text: word, Reboot: true}, ""
	}
	if word == "@every_second" { // FreeBSD
		return Schedule{Text: word, Shortest: time.Second}, ""
	}
	if fields, known := macros[word]; known {
		schedule, why = scheduleOf(fields)
		schedule.Text = word
		return schedule, why
	}
	if seconds, err := strconv.ParseUint(word[1:], 10, 31); err == nil && seconds > 0 {
		return Schedule{Text: word, Shortest: time.Duration(seconds) * time.Second}, ""
	}
	return Schedule{}, "unknown schedule " + strconv.Quote(word)
}

type column struct {
	name        string
	least, most int
	names       string // the names of the values from least on: three letters and a blank each
}

// sunday is the second number of Sunday, besides 0.
const sunday = 7

var columns = [5]column{
	{"minute", 0, 59, ""}, {"hour", 0, 23, ""}, {"day of month", 1, 31, ""},
	{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"}, {"day of week", 0, sunday, "sun mon tue wed thu fri sat"},
}

func scheduleOf(fields [5]string) (schedule Schedule, why string) {
	var sets [5]set
	for i, field := range fields {
		c, ok := &columns[i], false
		if sets[i], ok = c.setOf(field); !ok {
			return Schedule{}, "not understood as the " + c.name + " of a schedule: " + strconv.Quote(field) + c.advice(field)
		}
	}
	return Schedule{Text: strings.Join(fields[:], " "), Shortest: shortest(sets, fields[2][0] == '*' || fields[4][0] == '*')}, ""
}

type set uint64

func (s set) has(value int) bool { return s>>value&1 == 1 }

func (c *column) setOf(field string) (all set, ok bool) {
	for text := range strings.SplitSeq(field, ",") {
		values, ok := c.valuesOf(c.withoutChance(text))
		if !ok {
			return 0, false
		}
		all |= values
	}
	return all, true
}

var element = regexp.MustCompile(`^(?:\*|(\d+|[A-Za-z]{3})(?:-(\d+|[A-Za-z]{3}))?)(?:/(\d+))?$`)

func (c *column) valuesOf(text string) (values set, ok bool) {
	found := element.FindStringSubmatch(text)
	if found == nil {
		return 0, false
	}
	low, high, step := c.least, c.most, 1
	if found[1] != "" {
		low = c.number(found[1])
	}
	switch {
	case found[2] != "":
		high = c.number(found[2])
	case found[1] != "" && found[3] != "": // 5/20 is refused by Debian's cron and by cronie
		return 0, false
	case found[1] != "":
		high = low
	}
	if found[3] != "" {
		step, _ = strconv.Atoi(found[3]) // a number that is too large becomes the largest int
		step = min(step, c.most+1)
	}
	if low < c.least || low > high || high > c.most || step < 1 {
		return 0, false
	}
	for ; low <= high; low += step {
		values |= 1 << low
	}
	return values, true
}

func (c *column) number(word string) int {
	if at := strings.Index(c.names, strings.ToLower(word)); at >= 0 {
		return c.least + at/len("jan ")
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return -1
	}
	return n
}

// withoutChance turns LOW~HIGH into LOW: cronie and OpenBSD choose one value when they read the crontab, and
// the time between starts hardly depends on it. LOW~HIGH/N, each Nth with a random offset, becomes LOW-HIGH/N.
func (c *column) withoutChance(text string) string {
	low, rest, random := strings.Cut(text, "~")
	high, step, stepped := strings.Cut(rest, "/")
	low, high = cmp.Or(low, strconv.Itoa(c.least)), cmp.Or(high, strconv.Itoa(c.most))
	switch {
	case !random:
		return text
	case stepped:
		return low + "-" + high + "/" + step
	}
	if _, ok := c.valuesOf(low + "-" + high); !ok {
		return text
	}
	return low
}

var (
	downward = regexp.MustCompile(`^(\d+)-(\d+)$`)
	stepped  = regexp.MustCompile(`^(\d+)(/\d+)$`)
)

// advice returns how to write a range that goes down (22-4) or a step without a range (0/15); "" for anything else.
func (c *column) advice(field string) string {
	most := c.most
	if most == sunday {
		most--
	}
	last := strconv.Itoa(most)
	up := downward.ReplaceAllString(field, "$1-"+last+","+strconv.Itoa(c.least)+"-$2")
	from := stepped.ReplaceAllString(field, "$1-"+last+"$2")
	if _, ok := c.setOf(up); ok {
		return ", as a range goes up: " + up
	}
	if _, ok := c.setOf(from); ok {
		return ", as a step wants a range: " + from
	}
	return ""
}

const day = 24 * time.Hour

// shortest returns the shortest time between starts. sets are the schedule's columns; both is as for shortestOfDays.
// All days with a start have the same times.
func shortest(sets [5]set, both bool) time.Duration {
	var times []time.Duration
	for at := time.Duration(0); at < day; at += time.Minute {
		if sets[1].has(int(at/time.Hour)) && sets[0].has(int(at%time.Hour/time.Minute)) {
			times = append(times, at)
		}
	}
	days := shortestOfDays(sets, both)
	if days == 0 {
		return 0
	}
	least := days + times[0] - times[len(times)-1]
	for i, at := range times[1:] {
		least = min(least, at-times[i])
	}
	return least
}

type date struct{ day, month, weekday int }

var calendar = sync.OnceValue(func() (dates []date) { // two cycles of 28 years, as a date may occur only once a cycle
	for at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2056; at = at.Add(day) {
		dates = append(dates, date{at.Day(), int(at.Month()), int(at.Weekday())})
	}
	return dates
})

// shortestOfDays returns the shortest time between days with a start; 0 if there are none. If both is true, day of
// month and day of week must match. Otherwise neither begins with a star, and one match is enough (crontab(5)).
func shortestOfDays(sets [5]set, both bool) (least time.Duration) {
	last := -1
	for i, at := range calendar() {
		ofMonth := sets[2].has(at.day)
		ofWeek := sets[4].has(at.weekday) || at.weekday == 0 && sets[4].has(sunday)
		if !sets[3].has(at.month) || both && !(ofMonth && ofWeek) || !ofMonth && !ofWeek {
			continue
		}
		if gap := time.Duration(i-last) * day; last >= 0 {
			least = min(cmp.Or(least, gap), gap)
		}
		last = i
	}
	return least
}
