package runlog

import (
	"iter"
	"reflect"
	"strings"
	"time"

	"adlock/lib/limit"
)

type key struct {
	key string
	own bool
}

// fields lists the keys of Event, from the tags: one table for writing, reading and JSON.
var fields = func() (all []key) {
	event := reflect.TypeFor[Event]()
	for i := range event.NumField() {
		text, own := strings.CutSuffix(event.Field(i).Tag.Get("log"), ",own")
		all = append(all, key{text, own})
	}
	return all
}()

func pointersTo(e *Event) []any {
	pointers, event := make([]any, len(fields)), reflect.ValueOf(e).Elem()
	for i := range pointers {
		pointers[i] = event.Field(i).Addr().Interface()
	}
	return pointers
}

// Fields yields the key and value of each non-empty field in the line's order. A value is a string, int,
// true, limit.Seconds or (the event's) time.Time.
func (e *Event) Fields() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i, pointer := range pointersTo(e) {
			if value := valueAt(pointer); value != nil && !yield(fields[i].key, value) {
				return
			}
		}
	}
}

func valueAt(pointer any) any {
	switch f := pointer.(type) {
	case *time.Time:
		return *f
	case *Kind:
		return some(string(*f))
	case *string:
		return some(*f)
	case *int:
		return some(*f)
	case *bool:
		return some(*f)
	case *time.Duration:
		return some(limit.Seconds(*f))
	case *Opt[int]:
		if f.Set {
			return f.Value
		}
	case *Opt[time.Duration]:
		if f.Set {
			return limit.Seconds(f.Value)
		}
	}
	return nil
}

func some[T comparable](value T) any {
	if value == *new(T) {
		return nil
	}
	return value
}
