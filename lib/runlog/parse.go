package runlog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

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

func (p *parser) shared(v field) string {
	if v.escaped {
		return v.text
	}
	if s, ok := p.known[string(v.raw)]; ok {
		return s
	}
	if p.known == nil {
		p.known = make(map[string]string)
	}
	s := string(v.raw)
	if len(p.known) < maxKnown {
		p.known[s] = s
	}
	return s
}

// parse reads one line. For a damaged line, the error says what is wrong.
func (p *parser) parse(line []byte) (Event, error) {
	if p.event == nil {
		p.event = new(Event)
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

type field struct {
	raw     []byte
	text    string
	escaped bool
}

func (v field) own() string {
	if v.escaped {
		return v.text
	}
	return string(v.raw)
}

// pair returns the first key and value of line, and the rest. A key alone is an error: the line is torn.
func pair(line []byte) (key []byte, value field, rest []byte, err error) {
	eq := 0
	for eq < len(line) && isKeyByte(line[eq]) {
		eq++
	}
	if eq == 0 || eq == len(line) || line[eq] != '=' {
		return nil, field{}, nil, fmt.Errorf("no key=value at %.40q", line)
	}
	key, line = line[:eq], line[eq+1:]
	if len(line) > 0 && line[0] == '"' {
		value, rest, err = quoted(line[1:])
	} else {
		value, rest = bare(line)
	}
	if err != nil {
		return nil, field{}, nil, fmt.Errorf("%s: %w", key, err)
	}
	switch {
	case len(rest) == 0:
	case rest[0] == ' ' && len(rest) > 1:
		rest = rest[1:]
	default:
		return nil, field{}, nil, fmt.Errorf("%s: bad value at %.40q", key, rest)
	}
	return key, value, rest, nil
}

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c == '_' || c >= '0' && c <= '9'
}

func bare(line []byte) (value field, rest []byte) {
	n := 0
	for n < len(line) && isBareByte(line[n]) {
		n++
	}
	return field{raw: line[:n]}, line[n:]
}

func quoted(line []byte) (value field, rest []byte, err error) {
	end, escaped := 0, false
	for ; end < len(line) && line[end] != '"'; end++ {
		if line[end] == '\\' {
			escaped = true
			end++
		}
		if end < len(line) && line[end] < ' ' {
			return field{}, nil, fmt.Errorf("control character %q", line[end])
		}
	}
	if end >= len(line) {
		return field{}, nil, errors.New("quote never closed")
	}
	value = field{raw: line[:end], escaped: escaped}
	if escaped {
		text, ok := unquote(line[:end])
		if !ok {
			return field{}, nil, fmt.Errorf("bad escape in %.40q", line[:end])
		}
		value.text = text
	}
	return value, line[end+1:], nil
}

// set sets the field of that key. It skips unknown keys, which another version may have written.
func (p *parser) set(key []byte, v field) error {
	for range fields {
		i := p.next
		if p.next++; p.next == len(fields) {
			p.next = 0
		}
		if fields[i].key != string(key) {
			continue
		}
		if err := p.setField(i, v); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	}
	return nil
}

func (p *parser) setField(i int, v field) (err error) {
	switch f := p.pointers[i].(type) {
	case *time.Time:
		return setTime(f, v)
	case *Kind:
		*f = Kind(p.shared(v))
	case *string:
		if fields[i].own {
			*f = v.own()
		} else {
			*f = p.shared(v)
		}
	case *bool:
		*f = string(v.raw) == yes
	case *int:
		*f, err = parseInt(v.raw)
	case *time.Duration:
		*f, err = parseSeconds(v.raw)
	case *Opt[int]:
		return setOpt(f, v, parseInt)
	case *Opt[time.Duration]:
		return setOpt(f, v, parseSeconds)
	}
	return err
}

func setOpt[T any](o *Opt[T], v field, parse func([]byte) (T, error)) (err error) {
	o.Value, err = parse(v.raw)
	o.Set = true
	return err
}

// setTime refuses a line with two times: two lines have become one.
func setTime(t *time.Time, v field) (err error) {
	if !t.IsZero() {
		return errors.New("given twice")
	}
	*t, err = time.Parse(time.RFC3339Nano, string(v.raw))
	*t = t.UTC()
	return err
}

func parseInt(b []byte) (int, error) {
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return 0, fmt.Errorf("bad number %.40q", b)
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
		return 0, fmt.Errorf("bad duration %.40q", b)
	}
	return d, nil
}
