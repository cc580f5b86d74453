//go:build soak

package cron

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func itoa(n int) string { return strconv.Itoa(n) }

// emulated are the programs of another architecture: the kernel starts qemu for them, as during the
// build of an image for that architecture. This is set in a user namespace of its own (Linux 6.7),
// so that this machine's setting does not change.
type emulated struct {
	*testing.T
	dir, locks string
}

const format = "/usr/lib/binfmt.d/qemu-aarch64.conf"

// register goes before each command. Debian's line ends with flags: P keeps the command's
// own name, O and F open the program and qemu for it.
const register = `mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && cat ` + format + ` >/proc/sys/fs/binfmt_misc/register && exec "$@"`

func newEmulated(t *testing.T) *emulated {
	t.Helper()
	need.Tools(t, "qemu-aarch64-static", "unshare", "mount")
	need.Namespaces(t, "--user", "--map-root-user", "--mount")
	if _, err := os.Stat(format); err != nil {
		need.Skip(t, err)
	}
	e := &emulated{t, released(t) + "/build/arm64", helper.Dir(t)}
	if r := e.command("true").Run(t); r.Status != 0 {
		need.Skip(t, "the kernel has no binfmt_misc for namespaces: "+r.Err)
	}
	return e
}

func (e *emulated) command(args ...string) helper.Command {
	return helper.Command{Args: append([]string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", register, "sh"}, args...),
		Env: []string{"ADLOCK_DIR=" + e.locks, "ADLOCK_PAUSE=1s", "PATH=" + e.dir + ":" + os.Getenv("PATH")}, Dir: e.locks}
}

// want runs one of the programs and expects a status and one line at most.
func (e *emulated) want(status int, args ...string) helper.Result {
	e.Helper()
	r := e.command(append([]string{"adlock"}, args...)...).Run(e)
	if r.Status != status || strings.Count(r.Err, "\n") > 1 {
		e.Errorf("adlock %q: %+v, want status %d", args, r, status)
	}
	return r
}

func TestProgramsOfAnotherArchitectureWorkUnderQemu(t *testing.T) {
	t.Parallel()
	e := newEmulated(t)
	e.want(0, "run", "--name", "a", "--", "echo", "ran").Is(t, 0, "ran\n", "")
	e.want(3, "run", "--name", "a", "--", "sh", "-c", "exit 3")
	e.want(75, "run", "--name", "a", "--if-elapsed", "1h", "--", "echo", "ran").Is(t, 75, "", "…")
	e.want(0, "status").Is(t, 0, "…idle…", "…") // runs a partner program
	e.want(69, "run", "--name", "a", "--whole-job", "--", "true").Is(t, 69, "…", "…--whole-job: …")
	hook := "echo $ADLOCK_EVENT >" + e.locks + "/told"
	e.want(124, "run", "--name", "b", "--hook", hook, "--enforce", "--expire-after", "1s", "--", "sh", "-c", "sleep 600 & sleep 600")
	helper.Eventually(t, "the hook was told", func() bool {
		text, _ := os.ReadFile(e.locks + "/told")
		return string(text) == "fail\n"
	})
	helper.Eventually(t, "nothing of the job and the hook is left", func() bool { return len(helper.With("ADLOCK_DIR="+e.locks)) == 0 })
}

// qemu changes what a program reads about itself in /proc. A lock must describe its owner as other processes
// see it in /proc: otherwise they would take the owner for dead.
func TestAnOwnerUnderQemuIsFoundByOtherProcesses(t *testing.T) {
	t.Parallel()
	e := newEmulated(t)
	owner := e.command("adlock", "run", "--name", "a", "--", "sleep", "600").Start(t)
	path := ""
	helper.Eventually(t, "the atom is held", func() bool {
		found, _ := filepath.Glob(e.locks + "/lock.*")
		if len(found) > 0 {
			path = found[0]
		}
		return path != "" || owner.Ended()
	})
	owner.Lives(t)
	text := must.Get(os.ReadFile(path))(t)
	pid, _, _ := strings.Cut(string(text), "\n")
	stat := must.Get(os.ReadFile("/proc/" + pid + "/stat"))(t)
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for field, want := range map[string]string{"pgid": f[2], "session": f[3], "start": f[19]} {
		helper.Contains(t, string(text), "\n"+field+"="+want+"\n")
	}
	e.want(0, "run", "--name", "a", "--expire-after", "1ms", "--", "echo", "ran").Is(t, 0, "ran\n", "…")
	owner.Is(t, 130, "…")
}
