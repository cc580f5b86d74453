package cron

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/must"
)

// cron may start a line while another version is installed. inotify(7) reports each change of a name in a
// directory: a file that is only replaced by renames is never missing.
func TestNoFileIsMissingAtAnyMomentOfAReinstallation(t *testing.T) {
	tr, stage := newTree(t), t.TempDir()
	tr.want("install", "DESTDIR="+stage)
	watch := must.Get(unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK))(tr)
	defer unix.Close(watch)
	replaced, dirs := map[string]bool{}, map[int]string{}
	for _, file := range tr.files(stage) {
		_, path, _ := strings.Cut(file, " ")
		replaced[path] = false
		dir := must.Get(unix.InotifyAddWatch(watch, stage+filepath.Dir(path), unix.IN_CREATE|unix.IN_DELETE|unix.IN_MODIFY|unix.IN_MOVE))(tr)
		dirs[dir] = filepath.Dir(path)
	}
	tr.want("install", "DESTDIR="+stage)
	buffer := make([]byte, 1<<20) // for more events than the kernel keeps
	n := must.Get(unix.Read(watch, buffer))(tr)
	for rest := buffer[:n]; len(rest) > 0; { // inotify(7)
		dir, mask, size := int(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:]), binary.NativeEndian.Uint32(rest[12:])
		name := rest[unix.SizeofInotifyEvent:][:size]
		path := filepath.Join(dirs[dir], string(bytes.TrimRight(name, "\x00")))
		_, installed := replaced[path]
		if installed && mask != unix.IN_MOVED_TO || mask&unix.IN_Q_OVERFLOW != 0 {
			t.Errorf("%s: event %#x", path, mask)
		}
		if installed {
			replaced[path] = true
		}
		rest = rest[unix.SizeofInotifyEvent+size:]
	}
	for path, was := range replaced {
		if !was {
			t.Errorf("%s was not replaced", path)
		}
	}
}
