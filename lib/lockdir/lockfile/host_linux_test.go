package lockfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/sysfile"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// hostFile returns the path of this machine's host in d, and the node name.
func hostFile(t *testing.T, d *Dir) (path, node string) {
	t.Helper()
	need.MachineID(t)
	t.Setenv("ADLOCK_HOST", "")
	node = must.Get(sysfile.NodeName())(t)
	if !canKeep(node) || !isLocal(d.fd) {
		need.Skip(t, "a node name or file system that is not kept")
	}
	return d.Path(HostFile(process.Here().Machine)), node
}

func wantHost(t *testing.T, store string, keep bool, want string) {
	t.Helper()
	if got, err := Host(store, keep); got != want || err != nil {
		t.Errorf("the host is %q, %v; want %q", got, err, want)
	}
}

func wantRenamed(t *testing.T, d *Dir, host, node string) {
	t.Helper()
	if was, is := Renamed(d.path); was != host || is != node {
		t.Errorf("renamed from %q to %q; want %q, %q", was, is, host, node)
	}
}

func TestOnlyNewcomersRecordTheMachinesHostName(t *testing.T) {
	d := newDir(t)
	path, node := hostFile(t, d)
	wantHost(t, d.path, false, node)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("a question made it: %v", err)
	}
	wantHost(t, d.path, true, node)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	must.Do(t, os.WriteFile(path, []byte("before\n"), 0o600))
	wantHost(t, d.path, true, "before")
	wantHost(t, d.path, false, "before")
	wantRenamed(t, d, "before", node)
	t.Chdir(d.path)
	wantHost(t, "ftp://server", true, node)
	below := d.path + "/below"
	wantHost(t, below, false, node)
	if exists(d, "below") {
		t.Error("a question made a directory")
	}
	wantHost(t, below, true, node)
	must.Get(os.Stat(below + "/" + filepath.Base(path)))(t)
	t.Setenv("ADLOCK_HOST", "said")
	wantHost(t, d.path, true, "said")
	wantRenamed(t, d, "", "")
}

func TestTheHostIsReadFromARegularFileOnly(t *testing.T) {
	d := newDir(t)
	path, fifo := d.Path("host.x"), d.Path("fifo")
	must.Do(t, os.WriteFile(path, []byte("before\n"), 0o600))
	must.Do(t, unix.Mkfifo(fifo, 0o600))
	full := must.Get(os.OpenFile(fifo, os.O_RDWR, 0))(t)
	defer full.Close()
	must.Get(full.WriteString("before\n"))(t)
	for path, want := range map[string]string{path: "before", fifo: ""} {
		if host := glance(path); host != want {
			t.Errorf("%s: %q", path, host)
		}
	}
}

// The machine may be renamed between two starts at one time.
func TestTheHostNameThatWasRecordedFirstStays(t *testing.T) {
	d := newDir(t)
	for _, node := range []string{"one", "two"} {
		if !d.keepHost("host.x", node) {
			t.Errorf("%s: nothing is kept", node)
		}
		if host, err := d.host("host.x"); host != "one" || err != nil {
			t.Errorf("%s reads %q, %v", node, host, err)
		}
	}
}

func TestANodeNameWithUnsafeCharactersIsNotRecorded(t *testing.T) {
	d := newDir(t)
	file := "host.x"
	for node, want := range map[string]string{"a b": unkept, "a\nb": unkept, "*": unkept, "../x": unkept, "": unkept, "n.a-m_e": "n.a-m_e", strings.Repeat("x", 256): unkept} {
		if !isLocal(d.fd) {
			want = unkept
		}
		if !d.keepHost(file, node) {
			t.Errorf("%q: nothing is kept", node)
		}
		if host, err := d.host(file); host != want || err != nil {
			t.Errorf("%q is kept as %q, %v", node, host, err)
		}
		must.Do(t, os.Remove(d.Path(file)))
	}
}

func TestADamagedHostFileIsAnError(t *testing.T) {
	d := newDir(t)
	path, node := hostFile(t, d)
	for _, content := range []string{"", "half", "\n", "a b\n", "../x\n", strings.Repeat("\x00", 9), strings.Repeat("x", 300) + "\n"} {
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		for _, keep := range []bool{true, false} {
			if host, err := Host(d.path, keep); host != node || fault.KindOf(err) != fault.IO {
				t.Errorf("%q is %q, %v", content, host, err)
			}
		}
		wantRenamed(t, d, "", "")
	}
	must.Do(t, os.Remove(path))
	must.Do(t, os.Symlink("/etc/hostname", path))
	if _, err := Host(d.path, true); fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("a link: %v", err)
	}
}

// The verb that takes the lock reports what is wrong with the directory.
func TestTheHostIsTheNodeNameWithoutAUsableDirectory(t *testing.T) {
	d := newDir(t)
	_, node := hostFile(t, d)
	must.Do(t, os.WriteFile(filepath.Join(d.path, "file"), nil, 0o600))
	for _, path := range []string{d.path + "/file", d.path + "/file/below", "/proc/self/locks", "relative"} {
		if host, err := Host(path, true); host != node || err != nil {
			t.Errorf("%s: %q, %v", path, host, err)
		}
	}
	must.Do(t, os.Chmod(d.path, 0o777))
	wantHost(t, d.path, true, node)
}
