package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// Two users, one file in a sticky directory, as /tmp: whichever makes it.
func TestTwoUsersCanFlockAFileThatBothMayRead(t *testing.T) {
	need.Root(t)
	bin := program(t, 0o755)
	for claim, c := range map[string]struct {
		first  string // what the first user does before its run
		file   string
		status int // of the second user's run
	}{
		"made by the first run":            {"umask 022", "file", 0},
		"made by the first run, umask 077": {"umask 077", "file", 77},
		"made before":                      {": >file", "file", 0},
		"made before, for one user":        {"umask 077; : >file", "file", 77},
		"the directory":                    {":", ".", 0},
		"a link":                           {": >file; ln -s file link", "link", 0},
	} {
		for _, users := range [][2]int{{0, nobody}, {nobody, 60001}, {nobody, 0}} {
			dir := public(t)
			must.Do(t, os.Chmod(dir, os.ModeSticky|0o777))
			run := func(uid int, before string) helper.Result {
				locks := filepath.Join(public(t), "locks")
				must.Do(t, os.Mkdir(locks, 0o700))
				must.Do(t, os.Chown(locks, uid, uid))
				script := before + "; exec " + bin + " run --name a --flock " + c.file + " true"
				return helper.Command{UID: uid, Dir: dir, Args: []string{"sh", "-c", script}, Env: []string{"ADLOCK_DIR=" + locks}}.Run(t)
			}
			run(users[0], c.first).Is(t, 0, "…", "")
			want := c.status
			if users[1] == 0 {
				want = 0
			}
			if r := run(users[1], ":"); r.Status != want || want != 0 && !strings.Contains(r.Err, "chmod a+r '") {
				t.Errorf("%s by %v: the second: %+v", claim, users, r)
			}
		}
	}
}
