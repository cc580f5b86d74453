package runlog

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/test/support/must"
)

func TestReadEndBeginsWithAWholeLine(t *testing.T) {
	dir := t.TempDir()
	line := func(pid string) string { return "time=2026-11-21T02:58:12.123456Z event=lost pid=" + pid + "\n" }
	must.Do(t, os.WriteFile(filepath.Join(dir, fileName("dax")), []byte(line("1")+line("2")+line("3")), 0o600))
	whole := int64(len(line("1")))
	for most, want := range map[int64]int{whole + 1: 1, 2*whole + whole/2: 2, 3 * whole: 3, 1 << 40: 3, 1: 0} {
		got, cut := 0, false
		for e, err := range ReadEnd(dir, "dax", most) {
			if err == ErrCut && got == 0 && !e.Time.IsZero() {
				cut = true
				continue
			}
			if err != nil {
				t.Errorf("%d: %v", most, err)
			}
			if got++; e.PID != got+3-want {
				t.Errorf("%d: event %d is of %d", most, got, e.PID)
			}
		}
		if got != want || cut != (want == 1 || want == 2) {
			t.Errorf("the last %d bytes: %d events, want %d; cut: %v", most, got, want, cut)
		}
	}
}
