package supervise

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestFindDistinguishesMissingFromNotExecutable(t *testing.T) {
	dir := t.TempDir()
	bin, other := filepath.Join(dir, "bin"), dir+"/link/.."
	for file, mode := range map[string]os.FileMode{
		"bin/plain": 0o644, "bin/good": 0o755, "bin/both": 0o644, "other/both": 0o755, "other/sub/x": 0o755, "bin/dir/x": 0o755,
	} {
		write(t, filepath.Join(dir, file), mode)
	}
	must.Do(t, os.Symlink("other/sub", dir+"/link"))
	t.Setenv("PATH", bin+"::"+other)
	t.Chdir(dir)
	write(t, filepath.Join(dir, "here"), 0o755)
	for _, c := range []struct {
		command, path string
		status        int
	}{
		{"good", bin + "/good", 0},
		{"here", "./here", 0}, // an empty part of PATH is the current directory
		{"both", other + "/both", 0},
		{"./here", "./here", 0},
		{bin + "/good", bin + "/good", 0},
		{"plain", "", fault.StatusNotRunnable},
		{bin + "/plain", "", fault.StatusNotRunnable},
		{bin + "/dir", "", fault.StatusNotRunnable},
		{"dir", "", fault.StatusNoCommand},
		{"nowhere", "", fault.StatusNoCommand},
		{"", "", fault.StatusNoCommand},
		{bin + "/nowhere", "", fault.StatusNoCommand},
		{bin + "/plain/x", "", fault.StatusNoCommand},
	} {
		path, err := Find(c.command)
		if fault.StatusOf(err) != c.status || err == nil && path != c.path {
			t.Errorf("Find(%q) = %q, %v (status %d); want %q, status %d", c.command, path, err, fault.StatusOf(err), c.path, c.status)
		}
	}
}

func TestFindSearchesTheDefaultPathIfPATHIsNotSet(t *testing.T) {
	t.Setenv("PATH", "")
	os.Unsetenv("PATH")
	if path, err := Find("sh"); path != "/bin/sh" || err != nil {
		t.Errorf("Find = %q, %v", path, err)
	}
}

func write(t *testing.T, file string, mode os.FileMode) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(t, need.WriteProgram(file, nil, mode))
}
