package way

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestOnlyRunlogsMayLieBelowAGroupWritableDirectory(t *testing.T) {
	need.Root(t)
	const group, nobody = 4, 65534
	above := t.TempDir()
	for _, c := range []struct {
		uid  int
		mode os.FileMode
		ok   bool
	}{{0, 0o775, true}, {0, 0o777, false}, {nobody, 0o755, false}} {
		must.Do(t, os.Chown(above, c.uid, group))
		must.Do(t, os.Chmod(above, c.mode))
		dir := filepath.Join(above, "log")
		if err := CheckOwners(dir, "runlog", nil); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if err := Check(dir, "runlog", nil); err == nil {
			t.Errorf("%+v: a lock directory may", c)
		}
	}
}

func TestMappedUsersAndBadMapsCountAsInsideTheNamespace(t *testing.T) {
	const nobody = 65534
	for ids, want := range map[string]bool{
		"": false, "0 1000 1\n": false, "         0       1000          1\n65535 7 9\n": false, "0 100000 65534\n": false,
		"0 100000 65535\n": true, "65534 1000 1\n": true, "0 1000 1\n65530 100000 10\n": true, "0 0 4294967295\n": true,
		"0 1000\n": true, "0 1000 1 1\n": true, "x 1000 1\n": true, "0 1000 x\n": true, "\n": true,
		"4294967296 0 1\n": true, "0 0 18446744073709551616\n": true,
		"70000 0 1\n": false, "08 0 1\n": false,
	} {
		check.Equal(t, ids, mayHave(ids, nobody), want)
	}
}

func TestNoUserIsOutsideTheInitialUserNamespace(t *testing.T) {
	ids := must.Get(os.ReadFile("/proc/self/uid_map"))(t)
	if !strings.HasPrefix(strings.Join(strings.Fields(string(ids)), " "), "0 0 4294967295") {
		need.Skip(t, "this is a user namespace itself")
	}
	overflow := must.Get(os.ReadFile("/proc/sys/kernel/overflowuid"))(t)
	uid := must.Get(strconv.Atoi(strings.TrimSpace(string(overflow))))(t)
	for _, uid := range []int{0, uid, uid + 1} {
		if isOutside(uint32(uid)) {
			t.Errorf("%d is", uid)
		}
	}
}
