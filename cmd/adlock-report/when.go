package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/runlog"
)

const timeForms = `7d, 16:00, today, "yesterday 16:00" or "2026-11-20 16:00"`

var errNoPeriod = fault.New(fault.Usage, "--since", "is not before --until")

// These are the layouts of a full local time, and of a time of day.
var (
	timeLayouts  = []string{time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly}
	clockLayouts = []string{"15:04:05", "15:04"}
)

// moment is a setter for a time; an empty text undoes an earlier one.
func (q *query) moment(to *runlog.Opt[time.Time]) func(string) error {
	return func(text string) (err error) {
		to.Value, err = when(text, q.now)
		to.Set = text != ""
		return err
	}
}

// when returns the zero time for an empty text and for never.
func when(text string, now time.Time) (time.Time, error) {
	switch text {
	case "":
		return time.Time{}, nil
	case "now":
		return now, nil
	}
	switch d, err := limit.Parse(text); {
	case err == nil && d == limit.Never:
		return time.Time{}, nil
	case err == nil:
		return now.Add(-d), nil
	case limit.LacksUnit(text):
		return time.Time{}, err
	}
	if t, is := clockTime(text, now); is {
		return t, nil
	}
	if wall, is := parsedBy(timeLayouts, text); is {
		return limit.Local(wall, time.Local), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, errors.New("bad time " + strconv.Quote(text) + " (want " + timeForms + ")")
}

// clockTime parses [today|yesterday] [15:04[:05]]; a time without a day is the latest such time in the past.
func clockTime(text string, now time.Time) (time.Time, bool) {
	word, clock, _ := strings.Cut(text, " ")
	back := slices.Index([]string{"today", "yesterday"}, word)
	switch {
	case back < 0:
		clock = text
	case clock == "":
		clock = "00:00"
	}
	at, is := parsedBy(clockLayouts, clock)
	wall := time.Date(now.Year(), now.Month(), now.Day()-max(0, back), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	t := limit.Local(wall, time.Local)
	if back < 0 && t.After(now) {
		t = limit.Local(wall.AddDate(0, 0, -1), time.Local)
	}
	return t, is
}

func parsedBy(layouts []string, text string) (wall time.Time, is bool) {
	for _, layout := range layouts {
		if wall, err := time.Parse(layout, text); err == nil {
			return wall, true
		}
	}
	return time.Time{}, false
}
