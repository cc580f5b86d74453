package fault

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// coarse is an atom on a disk that keeps times in whole seconds: ext4 with the inodes of ext3.
func coarse(t *testing.T) *helper.Atom {
	t.Helper()
	need.Root(t)
	need.Tools(t, "mkfs.ext4", "mount", "umount")
	image, mount := filepath.Join(t.TempDir(), "image"), t.TempDir()
	must.Do(t, os.WriteFile(image, make([]byte, 4<<20), 0o600))
	if r := (helper.Command{Args: []string{"mkfs.ext4", "-q", "-I", "128", image}}).Run(t); r.Status != 0 {
		t.Fatal(r.Err)
	}
	if r := (helper.Command{Args: []string{"mount", "-o", "loop", image, mount}}).Run(t); r.Status != 0 {
		need.Skip(t, "mount: "+r.Err)
	}
	t.Cleanup(func() {
		if r := (helper.Command{Args: []string{"umount", "--lazy", mount}}).Run(t); r.Status != 0 {
			t.Error(r.Err)
		}
	})
	return &helper.Atom{Dir: filepath.Join(mount, "locks"), Bin: helper.Binary(t)}
}

// A stamp in whole seconds lies up to a second before the completion.
func TestIfElapsedIsKeptOnADiskWithTimesInWholeSeconds(t *testing.T) {
	t.Parallel()
	a := coarse(t)
	var last time.Time
	for range 8 {
		r := a.Shell(t, "$run --if-elapsed=1s --wait=20s --wait-elapsed -- date +%s.%N")
		seconds, err := strconv.ParseFloat(strings.TrimSpace(r.Out), 64)
		if r.Status != 0 || err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		start := time.UnixMicro(int64(seconds * 1e6))
		if apart := start.Sub(last); apart < time.Second {
			t.Errorf("it started %v after the start before", apart)
		}
		last = start
	}
}
