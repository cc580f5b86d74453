package record

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"adlock/lib/process"
)

// anyMember is a process that a record may name, of the owner's boot.
func anyMember(t *rapid.T, owner process.Identity) process.Identity {
	return process.Identity{
		PID: rapid.IntRange(1, 1<<30).Draw(t, "pid"), SID: rapid.IntRange(0, 1<<22).Draw(t, "sid"),
		Start: rapid.Uint64().Draw(t, "start"), Inode: rapid.Uint64().Draw(t, "inode"),
		PIDNS: rapid.Uint64().Draw(t, "pidns"), TimeNS: rapid.Uint64().Draw(t, "timens"),
		Boot: owner.Boot, Machine: owner.Machine,
	}
}

func TestAppendedLinesAreReadBackInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, want := anyRecord(t), Appended{}
		text := string(r.Bytes())
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			id := anyMember(t, r.Owner)
			switch rapid.SampledFrom([]string{"command", "survivor", "many"}).Draw(t, "line") {
			case "command":
				want.Command = id
				text += CommandLine(id)
			case "survivor":
				want.Survivors = append(want.Survivors, id)
				text += SurvivorLine(len(want.Survivors), id)
			case "many":
				want.Uncounted = true
				text += ManySurvivors
			}
		}
		unfinished := CommandLine(anyMember(t, r.Owner))
		text += unfinished[:rapid.IntRange(0, len(unfinished)-1).Draw(t, "unfinished")]
		record, got, content := ParseAll([]byte(text))
		if content != Full || record != r || !reflect.DeepEqual(got, want) {
			t.Fatalf("content %d\n got %+v\nwant %+v", content, got, want)
		}
	})
}

func TestALockWithAnInvalidAppendedLineIsDamaged(t *testing.T) {
	whole := string(fullRecord().Bytes())
	for _, line := range []string{
		"command=1 2 3 4 5\n", "command=1 2 3 4 5 6 7\n", "command=0 2 3 4 5 6\n", "command=1073741825 2 3 4 5 6\n",
		"command=-1 2 3 4 5 6\n", "command=1 2 3 4 5 x\n", "commands=1 2 3 4 5 6\n", "survivor=1 2 3 4 5 6\n", "\n",
	} {
		if record, appended, content := ParseAll([]byte(whole + line)); content != Damaged || record != (Record{}) || !reflect.DeepEqual(appended, Appended{}) {
			t.Errorf("%q: content %d, %+v, %+v", line, content, record, appended)
		}
	}
}

func TestSplitCutsALockAfterItsFirstEndLine(t *testing.T) {
	for text, want := range map[string][2]string{
		"a\nend=\nb\nend=\n": {"a\nend=\n", "b\nend=\n"}, "\nend=\nb": {"\nend=\n", "b"}, "end=\nb": {"end=\nb", ""},
	} {
		if record, rest := Split([]byte(text)); string(record) != want[0] || string(rest) != want[1] {
			t.Errorf("%q: %q and %q", text, record, rest)
		}
	}
}

func TestALastLockWithAnInvalidStartIsRefused(t *testing.T) {
	for _, line := range []string{"started=yesterday\n", "newest=1 2\n", "newest=1 2 b c\n", "newest=x 2 b\n", "newest=1 x b\n"} {
		if m, err := ParseMemory([]byte(line)); err == nil {
			t.Errorf("%q: %+v", line, m)
		}
	}
}
