package lockdir

import (
	"os"
	"strings"
	"testing"

	"adlock/lib/locker"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
)

func TestALockFromABackupIsToldOnceAndStays(t *testing.T) {
	k := newLocker(t)
	k.Log = &runlog.Log{Dir: t.TempDir(), Host: "dax"}
	held := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	lock, err := k.Dir.Active(motdFiles)
	if err != nil || lock.Record.File == 0 || lock.Restored() {
		t.Fatalf("made here: %+v, %v", lock, err)
	}
	lock.Close()
	path := k.Dir.Path("lock." + motdFiles)
	text, err := os.ReadFile(path)
	if err != nil || os.Rename(path, path+".old") != nil { // the old file keeps its inode
		t.Fatal(err)
	}
	of := strings.NewReplacer("machine="+lock.Record.Owner.Machine, "machine=another", "boot="+lock.Record.Owner.Boot, "boot=another")
	plant(t, k, of.Replace(string(text)), 0)
	r := ask(sleeper(t))
	for _, want := range []string{"a backup has brought this lock back: ", ""} {
		said := helper.Stderr(t, func() { wantVerdict(t, k, r, locker.Busy) })
		if want == "" && said != "" || !strings.Contains(said, want) || want != "" && !strings.Contains(said, "adlock clear ") {
			t.Errorf("said %q", said)
		}
	}
	if found, err := k.Dir.Active(motdFiles); err != nil || found.Record.Token != held.Token {
		t.Errorf("%+v, %v", found, err)
	}
}
