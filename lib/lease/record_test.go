package lease

import (
	"reflect"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

var odd = atom.Atom{Program: "p", Host: "h", Operator: "o\n=\"", Operand: "\xff x"}

func TestARecordAndALastLockAreReadBackAsWritten(t *testing.T) {
	r := Record{
		Record: record.Record{
			Owner: process.Identity{PID: 7, Start: 8, Boot: "b"}, Token: record.NewToken(), Atom: odd,
			Boottime: time.Second, ExpireAfter: time.Hour, Shared: true,
		},
		Node: "a \"node\"\n", Taken: time.Unix(5, 6).UTC(), Lease: time.Minute, Stuck: "process 7: no\nway", Idle: time.Minute, Held: time.Hour, Work: "12 kB",
	}
	got, err := ParseRecord("x", r.Bytes())
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%v\n%+v\n%+v", err, got, r)
	}
	l := Last{Token: "t", Kept: true, Node: "a \"node\"\n"}
	l.Completed, l.Memory.Started, l.Memory.Atom = time.Unix(9, 1).UTC(), time.Unix(8, 1).UTC(), odd
	read, err := ParseLast("x", l.Bytes())
	if err != nil || !reflect.DeepEqual(read, l) {
		t.Errorf("%v\n%+v\n%+v", err, read, l)
	}
}

func TestARecordThatIsCutShortIsRejected(t *testing.T) {
	whole := Record{Record: record.Record{Owner: process.Identity{PID: 7}, Token: "t", Atom: odd}, Node: "n", Lease: time.Minute}.Bytes()
	for n := range whole {
		if _, err := ParseRecord("x", whole[:n]); err == nil || IsWhole(whole[:n]) {
			t.Fatalf("%q was read, or counts as whole", whole[:n])
		}
	}
}

func TestAStampSlightlyInTheFutureCountsAsNow(t *testing.T) {
	now := time.Now()
	for ago, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 0: 0, -time.Second: 0, -policy.FutureSlack: 0,
		-policy.FutureSlack - 1: -policy.FutureSlack - 1, -time.Hour: -time.Hour, // reported as invalid
	} {
		seen := Snapshot{Now: now.Add(time.Minute)} // by another clock
		seen.Last.Completed = seen.Now.Add(-ago)
		if got := now.Sub(seen.moved(now).Completed); got != want {
			t.Errorf("%v ago: %v", ago, got)
		}
	}
}
