package sysfile

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/test/support/must"
)

func TestPreadReadsAtAnOffset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, []byte("a word"), 0o600))
	fd := opened(t, path)
	var got [8]byte
	n, err := Pread(fd, got[:], 2)
	if err != nil || string(got[:n]) != "word" {
		t.Errorf("%v, read %q", err, got[:n])
	}
	if n, err := Pread(fd, got[:], 6); n != 0 || err != nil {
		t.Errorf("at the end: %d, %v", n, err)
	}
}
