package lockdir

import (
	"os"
	"strings"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// longAgo is before this boot.
const longAgo = 20 * 365 * 24 * time.Hour

// wrecks returns what a loss of power may leave of a lock.
func wrecks(t *testing.T, k *Locker) map[string]string {
	t.Helper()
	wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	path := k.Dir.Path("lock." + motdFiles)
	whole := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.Remove(path))
	zeros := strings.Repeat("\x00", len(whole))
	return map[string]string{
		"zeros": zeros, "cut short": string(whole[:100]), "zeros after a block": string(whole[:100]) + zeros[100:],
		"a block of zeros": zeros[:100] + string(whole[100:]),
	}
}

func needKnownBoot(t *testing.T) {
	t.Helper()
	if !process.BeforeBoot(time.Now().Add(-longAgo)) {
		need.Skip(t, "in a time namespace")
	}
}

func TestALockThatALossOfPowerDamagedIsCleared(t *testing.T) {
	needKnownBoot(t)
	k := newLocker(t)
	newcomer := ask(sleeper(t))
	slotted := newcomer
	slotted.Slots = 1
	for claim, content := range wrecks(t, k) {
		for file, r := range map[string]locker.Request{
			"lock." + motdFiles: newcomer, motd.Slot(1).ActiveLock(): slotted, motd.Name().ReaderLock(4711): newcomer,
		} {
			must.Do(t, k.Dir.MarkRead(motdFiles))
			plantFile(t, k, file, content, 0)
			if _, _, err := inWords(k.DryRun(&r)); fault.KindOf(err) != fault.IO {
				t.Errorf("%s, %s of this boot: %v", claim, file, err)
			}
			plantFile(t, k, file, content, longAgo)
			if free, reason, err := inWords(k.DryRun(&r)); !free || err != nil {
				t.Errorf("%s, %s: a dry run says %q, %v", claim, file, reason, err)
			}
			if entries, err := k.List(); err != nil || len(entries) == 0 || entries[0].Err != nil {
				t.Errorf("%s, %s: %+v, %v", claim, file, entries, err)
			}
			release(t, k, wantVerdict(t, k, r, locker.Acquired))
			if _, err := os.Stat(k.Dir.Path(file)); !os.IsNotExist(err) {
				t.Errorf("%s, %s: it is still there (%v)", claim, file, err)
			}
		}
	}
}

// A later version may have written such a lock, and its owner may live.
func TestAWholeLockOfAnUnknownFormatIsAnError(t *testing.T) {
	k := newLocker(t)
	for _, content := range []string{"4711\ntoken=x\nformat=2\nend=\n", "4711\ntoken=x\nformat=1\nend=\nunknown\n"} {
		plant(t, k, content, longAgo)
		if _, err := k.Take(ask(sleeper(t))); fault.KindOf(err) != fault.IO {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestADamagedLastLockMakesTheAtomDueAndIsMadeAnew(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	r := ask(owner)
	r.Limits.IfElapsed, r.Atom.Operand = time.Hour, "my_db" // its name does not identify it
	name := r.Atom.Name()
	for claim, content := range map[string]string{"zeros": strings.Repeat("\x00", 200), "cut short": "start", "forgotten": "start"} {
		plantFile(t, k, name.LastLock(), content, time.Minute)
		if free, reason, err := inWords(k.DryRun(&r)); !free || err != nil || !strings.Contains(reason, "the last lock is damaged") {
			t.Errorf("%s: a dry run says %v %q, %v", claim, free, reason, err)
		}
		if claim == "forgotten" { // which makes it anew, without the identity
			must.Do(t, k.Forget(name))
		}
		letGo(t, k, r, wantVerdict(t, k, r, locker.Acquired))
		if last, err := k.Dir.Last(name); err != nil || last.Damaged || last.Memory.Atom != r.Atom || time.Since(last.Completed) > time.Minute {
			t.Errorf("%s: %+v, %v", claim, last, err)
		}
		wantVerdict(t, k, r, locker.TooSoon)
	}
}

func TestALockFromABackupIsReportedOnceAndStays(t *testing.T) {
	k := newLocker(t)
	k.Log = &runlog.Log{Dir: t.TempDir(), Host: "dax"}
	held := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	lock, err := k.Dir.Active(motdFiles)
	if err != nil || lock.Record.File == 0 || lock.Restored() {
		t.Fatalf("made here: %+v, %v", lock, err)
	}
	lock.Close()
	path := k.Dir.Path("lock." + motdFiles)
	text := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.Rename(path, path+".old")) // the old file keeps its inode
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
