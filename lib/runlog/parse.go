package runlog

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"adlock/lib/fault"
	"adlock/lib/limit"
)

// parser parses lines. Recurring strings are kept once: a runlog has many lines and few atoms.
type parser struct {
	known map[string]string

	event    *Event // from the line that is being parsed
	pointers []any  // to the fields of event
	next     int    // the field that is tried first, as lines keep the order of the fields
}

// maxKnown bounds what a parser remembers, for runlogs whose operands never recur.
const maxKnown = 4096

func (p *parser) shared(v []byte) string {
	if s, ok := p.known[string(v)]; ok {
		return s
	}
	s := string(v)
	if len(p.known) < maxKnown {
		p.known[s] = s
	}
	return s
}

// parse reads one line. For a damaged line, the error says what is wrong.
func (p *parser) parse(line []byte) (Event, error) {
	if p.event == nil {
		p.event, p.known = new(Event), make(map[string]string)
		p.pointers = pointersTo(p.event)
	}
	*p.event, p.next = Event{}, 0
	for rest := line; len(rest) > 0; {
		key, value, next, err := pair(rest)
		if err != nil {
			return Event{}, err
		}
		if err := p.set(key, value); err != nil {
			return Event{}, err
		}
		rest = next
	}
	if p.event.Time.IsZero() || p.event.Kind == "" {
		return Event{}, errors.New("no time or no event")
	}
	return *p.event, nil
}

// pair returns the first key and value of line, and the rest. A key alone is an error: the line is torn.
func pair(line []byte) (key, value, rest []byte, err error) {
	eq := 0
	for eq < len(line) && isKeyByte(line[eq]) {
		eq++
	}
	if eq == 0 || eq == len(line) || line[eq] != '=' {
		return nil, nil, nil, errors.New("no key=value at " + excerpt(line))
	}
	key, line = line[:eq], line[eq+1:]
	if len(line) > 0 && line[0] == '"' {
		value, rest, err = quoted(line[1:])
	} else {
		value, rest = bare(line)
	}
	if err != nil {
		return nil, nil, nil, about(key, err)
	}
	switch {
	case len(rest) == 0:
	case rest[0] == ' ' && len(rest) > 1:
		rest = rest[1:]
	default:
		return nil, nil, nil, about(key, errors.New("bad value at "+excerpt(rest)))
	}
	return key, value, rest, nil
}

func about(key []byte, err error) error { return fault.Worded(string(key)+": "+err.Error(), err) }

func excerpt(line []byte) string { return strconv.Quote(string(line[:min(40, len(line))])) }

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c == '_' || c >= '0' && c <= '9'
}

func bare(line []byte) (value, rest []byte) {
	n := 0
	for n < len(line) && isBareByte(line[n]) {
		n++
	}
	return line[:n], line[n:]
}

func quoted(line []byte) (value, rest []byte, err error) {
	end, escaped, ok := 0, false, true
	for ; end < len(line) && line[end] != '"'; end++ {
		if line[end] == '\\' {
			escaped = true
			end++
		}
		if end < len(line) && line[end] < ' ' {
			return nil, nil, errors.New("control character " + strconv.QuoteRune(rune(line[end])))
		}
	}
	if end >= len(line) {
		return nil, nil, errors.New("quote never closed")
	}
	value, rest = line[:end], line[end+1:]
	if escaped {
		value, ok = unquote(value)
	}
	if !ok {
		return nil, nil, errors.New("bad escape in " + excerpt(line[:end]))
	}
	return value, rest, nil
}

// set sets the field of that key. It skips unknown keys, which another version may have written.
func (p *parser) set(key []byte, v []byte) error {
	for range fields {
		i := p.next
		if p.next++; p.next == len(fields) {
			p.next = 0
		}
		if fields[i].key != string(key) {
			continue
		}
		if err := p.setField(i, v); err != nil {
			return about(key, err)
		}
		return nil
	}
	return nil
}

func (p *parser) setField(i int, v []byte) (err error) {
	switch f := p.pointers[i].(type) {
	case *time.Time:
		return setTime(f, v)
	case *Kind:
		*f = Kind(p.shared(v))
	case *string:
		if fields[i].own {
			*f = string(v)
		} else {
			*f = p.shared(v)
		}
	case *bool:
		*f = string(v) == yes
	case *int:
		*f, err = parseInt(v)
	case *time.Duration:
		*f, err = parseSeconds(v)
	case *Opt[int]:
		return setOpt(f, v, parseInt)
	case *Opt[time.Duration]:
		return setOpt(f, v, parseSeconds)
	}
	return err
}

func setOpt[T any](o *Opt[T], v []byte, parse func([]byte) (T, error)) (err error) {
	o.Value, err = parse(v)
	o.Set = true
	return err
}

// setTime refuses a line with two times: two lines have become one.
func setTime(t *time.Time, v []byte) (err error) {
	if !t.IsZero() {
		return errors.New("given twice")
	}
	*t, err = time.Parse(time.RFC3339Nano, string(v))
	*t = t.UTC()
	return err
}

func parseInt(b []byte) (int, error) {
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return 0, errors.New("bad number " + excerpt(b))
	}
	return n, nil
}

func parseSeconds(b []byte) (time.Duration, error) {
	text := string(b)
	if text == "never" {
		return limit.Never, nil
	}
	d, err := time.ParseDuration(text + "s")
	_, fraction, dotted := strings.Cut(text, ".")
	if err != nil || strings.Trim(text, "-.0123456789") != "" || dotted && fraction == "" || len(fraction) > 9 {
		return 0, errors.New("bad duration " + excerpt(b))
	}
	return d, nil
}
