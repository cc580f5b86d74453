package sysfile

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

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

// Lstatat describes the name itself, here a link; Fstat describes the opened file.
func TestALinkIsTheNameAndNotTheFile(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must.Do(t, os.Symlink("file", filepath.Join(dir, "link")))
	var name, file unix.Stat_t
	must.Do(t, Lstatat(directory(t, dir), "link", &name))
	must.Do(t, Fstat(opened(t, filepath.Join(dir, "link")), &file))
	if name.Mode&unix.S_IFMT != unix.S_IFLNK || file.Mode&unix.S_IFMT != unix.S_IFREG {
		t.Errorf("the name is %o, the file %o", name.Mode, file.Mode)
	}
}

func TestAModeIsGivenWhateverTheUmask(t *testing.T) {
	dir := t.TempDir()
	defer unix.Umask(unix.Umask(0o777))
	fd := must.Get(Openat(directory(t, dir), "file", unix.O_RDWR|unix.O_CREAT, 0o600))(t)
	defer unix.Close(fd)
	must.Do(t, Fchmod(fd, 0o600))
	var st unix.Stat_t
	must.Do(t, Fstat(fd, &st))
	if st.Mode&0o7777 != 0o600 {
		t.Errorf("mode %o", st.Mode&0o7777)
	}
}

func directory(t *testing.T, path string) int {
	t.Helper()
	fd := must.Get(Open(path, unix.O_RDONLY|unix.O_DIRECTORY))(t)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}
