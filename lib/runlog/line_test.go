package runlog

import (
	"bytes"
	"cmp"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logfmt/logfmt"
	"pgregory.net/rapid"

	"adlock/test/support/check"
)

const testHost = "dax"

// anyText draws strings of every sort: words, any UTF-8, any bytes.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z/_.-]{0,12}`),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{`\`, `"`, "=", "\n", "torn", "\xff", "\xed\xb2\x80", `\udc80`, "\ufffd", "\u009b2J", "💀\x80"}),
	)
}

func anyDuration() *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.OneOf(
		rapid.Int64(),
		rapid.Int64Range(-1e12, 1e12),
		rapid.SampledFrom([]int64{0, 1, -1, 1e9, 1e8, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64}),
	), func(n int64) time.Duration { return time.Duration(n) })
}

func anyOpt[T any](g *rapid.Generator[T]) *rapid.Generator[Opt[T]] {
	return rapid.OneOf(rapid.Just(Opt[T]{}), rapid.Map(g, Some[T]))
}

// anyEvent draws events as a reader returns them: with a time in whole microseconds, a kind and a host.
func anyEvent(t *rapid.T) Event {
	first := time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro()
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMicro()
	number := rapid.OneOf(rapid.Int(), rapid.IntRange(0, 300))
	var e Event
	fields := reflect.ValueOf(&e).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		switch f := fields.Field(i).Addr().Interface().(type) {
		case *time.Time:
			*f = time.UnixMicro(rapid.Int64Range(first, last).Draw(t, name)).UTC()
		case *Kind:
			*f = Kind(rapid.OneOf(rapid.Just("acquire"), anyText()).Filter(func(s string) bool { return s != "" }).Draw(t, name))
		case *string:
			*f = anyText().Draw(t, name)
		case *int:
			*f = number.Draw(t, name)
		case *bool:
			*f = rapid.Bool().Draw(t, name)
		case *time.Duration:
			*f = anyDuration().Draw(t, name)
		case *Opt[int]:
			*f = anyOpt(number).Draw(t, name)
		case *Opt[time.Duration]:
			*f = anyOpt(anyDuration()).Draw(t, name)
		default:
			t.Fatalf("%s: cannot be drawn", name)
		}
	}
	e.Host = cmp.Or(e.Host, testHost)
	return e
}

// lineOf returns the line of e without its newline.
func lineOf(e Event) []byte { return bytes.TrimSuffix(appendLine(nil, &e, testHost), []byte("\n")) }

// parsed reads a line as Read does.
func parsed(line []byte) (Event, error) {
	e, err := new(parser).parse(line)
	if e.Host == "" {
		e.Host = testHost
	}
	return e, err
}

func TestALineHasTheDocumentedFormat(t *testing.T) {
	e := Event{
		Time: time.Date(2026, 11, 21, 3, 58, 12, 123456789, time.FixedZone("CET", 3600)),
		Kind: Release, Program: "backup", Host: "dax", Operator: "run", Operand: "tar /srv/my files\n\xe9é",
		PID: 811, Token: "9f3a", IfElapsed: Some(time.Duration(0)), ExpireAfter: Some(time.Duration(math.MaxInt64)),
		Duration: Some(61250 * time.Millisecond), Status: Some(0),
	}
	want := `time=2026-11-21T02:58:12.123456Z event=release program=backup operator=run` +
		` operand="tar /srv/my files\n\udce9é" pid=811 token=9f3a if_elapsed=0 expire_after=never duration=61.25 status=0`
	check.Equal(t, "the line", string(lineOf(e)), want)
}

func TestEveryEventIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		line := lineOf(e)
		if bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) || !utf8.Valid(line) {
			t.Fatalf("line is no printable text: %q", line)
		}
		got, err := parsed(line)
		if err != nil || got != e {
			t.Fatalf("%s: %v\n%+v, not\n%+v", line, err, got, e)
		}
	})
}

// Another logfmt reader reads the same text, except for bytes that text cannot contain.
func TestEachLineIsValidLogfmt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		line := lineOf(e)
		decoder := logfmt.NewDecoder(bytes.NewReader(line))
		decoder.ScanRecord()
		operand := ""
		for decoder.ScanKeyval() {
			if string(decoder.Key()) == "operand" {
				operand = string(decoder.Value())
			}
		}
		if err := decoder.Err(); err != nil || utf8.ValidString(e.Operand) && operand != e.Operand {
			t.Fatalf("%s: %v, operand %q, not %q", line, err, operand, e.Operand)
		}
	})
}

func TestATornLineIsNeverAnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := lineOf(anyEvent(t))
		cut := rapid.IntRange(0, len(line)-1).Draw(t, "cut")
		next := lineOf(anyEvent(t))
		for _, glued := range []string{
			string(line[:cut]) + strings.TrimSuffix(torn, "\n"),
			string(line[:cut]) + " to" + strings.TrimSuffix(torn, "\n"),
			string(line) + " " + string(next),
		} {
			if e, err := parsed([]byte(glued)); err == nil {
				t.Fatalf("%q was taken for %+v", glued, e)
			}
		}
	})
}

func TestTheErrorOfADamagedLineNamesTheCause(t *testing.T) {
	const start = "time=2026-11-21T02:58:12.123456Z event=deny "
	for _, c := range []struct{ line, reason string }{
		{"event=deny", "no time"},
		{"time=2026-11-21T02:58:12.123456Z", "no event"},
		{"time=2026-02-30T02:58:12.123456Z event=deny", "out of range"},
		{"time=2026-11-21 event=deny", "time"},
		{start + "time=2026-11-21T02:58:12.123456Z", "given twice"},
		{start + "pid=12x", `pid: bad number "12x"`},
		{start + "pid=", "pid: bad number"},
		{start + "age=1.0000000001", "age: bad duration"},
		{start + "age=9223372036.854775808", "age: bad duration"},
		{start + "age=1.", "age: bad duration"},
		{start + "age=-", "age: bad duration"},
		{start + "oper", `no key=value at "oper"`},
		{start + `operand="a`, "quote never closed"},
		{start + `operand="a\"`, "quote never closed"},
		{start + `operand="\x41"`, "bad escape"},
		{start + `operand="\ud800"`, "bad escape"},
		{start + `operand="\u12"`, "bad escape"},
		{start + "operand=\"a\x00\"", "control character"},
		{start + "operand=a\x00", "bad value"},
		{start + `operand=a"b`, "bad value"},
		{start, "bad value"},
		{"\x00\x00\x00", "no key=value"},
	} {
		if _, err := parsed([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%q: error %v, want %q", c.line, err, c.reason)
		}
	}
}

func TestALineWrittenByAnotherProgramIsRead(t *testing.T) {
	line := `event=deny colour="a \"shade\" of blue" time=2026-11-21T03:58:12+01:00 pid="7" operand="\/\u0041\ud83d\udc80\b" age=1.500`
	got, err := parsed([]byte(line))
	want := Event{
		Time: time.Date(2026, 11, 21, 2, 58, 12, 0, time.UTC), Kind: Deny, Host: testHost,
		PID: 7, Operand: "/A💀\b", Age: Some(1500 * time.Millisecond),
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`time=2026-11-21T02:58:12.123456Z event=release operand="tar \udce9\n" pid=811 age=-1.5 status=0`))
	f.Add([]byte(`time=2026-11-21T03:58:12+01:00 event=deny expire_after=never torn`))
	f.Add([]byte("time=\x00 event=\"\\ud83d\\udc80\\u009b\""))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := parsed(line)
		if err != nil || e.Time.Year() > 9999 || e.Time.Year() < 0 {
			return
		}
		e.Time = e.Time.Truncate(time.Microsecond)
		if e.Time.IsZero() {
			return
		}
		again, err := parsed(lineOf(e))
		if err != nil || again != e {
			t.Fatalf("%q: %+v came back as %+v (%v)", line, e, again, err)
		}
	})
}
