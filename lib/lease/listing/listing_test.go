package listing

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/must"
)

func lockedBy(pid int, operand string) locker.View {
	a := atom.Atom{Program: "p", Host: "h", Operator: "o", Operand: operand}
	return locker.View{
		Active: policy.Active{Held: true, Age: time.Minute, Owner: policy.Waiter, Asked: time.Hour},
		Record: record.Record{Owner: process.Identity{PID: pid}, Token: record.NewToken(), Atom: a, ExpireAfter: time.Hour},
		Node:   "web 2",
	}
}

func written(t *testing.T, entries []locker.Entry, slots []locker.Slot, failed error) *bytes.Buffer {
	t.Helper()
	var text bytes.Buffer
	must.Do(t, Write(&text, entries, slots, failed))
	return &text
}

func TestAListingIsReadBackAsWritten(t *testing.T) {
	memory := must.Get(record.ParseMemory([]byte("learn.runs=3\nlearn.mean=2\nlater=\u00fe\n")))(t)
	held := locker.Entry{Name: "p.h.o.x", Completed: time.Unix(7, 9).UTC(), View: lockedBy(7, "a\nb\xff")}
	held.Last, held.Memory = policy.Last{Completed: true, Age: time.Second, FromStart: true}, memory
	held.Node, held.Silent, held.CompletedOn = "web1", true, "web3"
	held.Ticks = []atom.File{{Kind: atom.Tick, Name: held.Name, Period: time.Hour, Number: -3}}
	read := locker.Entry{Name: "p.h.o.y", Readers: []locker.View{lockedBy(8, "y"), lockedBy(9, "y")}, Waiting: []locker.View{lockedBy(10, "y")}}
	bare := locker.Entry{Name: "p.h.o.z", View: locker.View{Active: policy.Active{Held: true, Empty: true, Age: time.Second}}}
	slot := locker.Slot{Name: "p.h.slot-2", Number: 2, View: held.View}
	slot.Last, slot.Memory = policy.Last{}, record.Memory{}
	entries, slots, err := Read(written(t, []locker.Entry{held, read, bare}, []locker.Slot{slot}, nil))
	must.Do(t, err)
	if want := []locker.Entry{held, read, bare}; !reflect.DeepEqual(entries, want) {
		t.Errorf("read\n%+v, want\n%+v", entries, want)
	}
	if !reflect.DeepEqual(slots, []locker.Slot{slot}) {
		t.Errorf("slots %+v", slots)
	}
}

func TestAnErrorKeepsItsKindInAListing(t *testing.T) {
	_, _, err := Read(written(t, nil, nil, fault.New(fault.Unavailable, "etcd://a/p", "no answer in time")))
	if err == nil || fault.KindOf(err) != fault.Unavailable || err.Error() != "etcd://a/p: no answer in time" {
		t.Errorf("%v", err)
	}
	damaged := locker.Entry{Name: "p.h.o.x", Err: fault.New(fault.IO, "x", "is cut short")}
	entries, _, err := Read(written(t, []locker.Entry{damaged}, nil, nil))
	if err != nil || len(entries) != 1 || fault.KindOf(entries[0].Err) != fault.IO || entries[0].Err.Error() != "x: is cut short" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestAListingThatIsCutShortIsRejected(t *testing.T) {
	text := written(t, []locker.Entry{{Name: "p.h.o.x"}}, nil, nil).Bytes()
	for n := range len(text) - 1 {
		if entries, _, err := Read(bytes.NewReader(text[:n])); !errors.Is(err, errCut) || entries != nil {
			t.Errorf("of %d bytes: %+v, %v", n, entries, err)
		}
	}
}

func TestAWrappedErrorKeepsItsTextAndKindInAListing(t *testing.T) {
	inner := fault.New(fault.IO, "x", "is full")
	for text, failed := range map[string]error{
		"the last run is not noted: x: is full": fmt.Errorf("the last run is not noted: %w", inner),
		"x: is full; y: is gone":                errors.Join(inner, errors.New("y: is gone")),
		"x: is full":                            inner,
	} {
		if err := FailureOf(failed).Err(); err.Error() != text || fault.KindOf(err) != fault.IO {
			t.Errorf("%v, kind %v; want %s", err, fault.KindOf(err), text)
		}
	}
	must.Do(t, FailureOf(nil).Err())
}
