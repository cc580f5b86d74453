package cli

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func (s *stage) put(text string, words ...string) helper.Result {
	s.Helper()
	c := s.command(append([]string{"mkatomic"}, words...)...)
	c.Stdin = text
	return c.Run(s)
}

func TestMkatomicMakesOnlyAMissingFileInADirectory(t *testing.T) {
	s := newStage(t)
	must(t, os.MkdirAll(s.in("dir/sub"), 0o755))
	must(t, os.Symlink("dir/sub", s.in("link")))
	big := strings.Repeat("0123456789abcdef", 1<<20)
	for _, c := range []struct {
		status int
		says   string
		words  []string
	}{
		{0, "", []string{"f"}}, {75, "exists already", []string{"f"}}, {75, "exists already", []string{"dir"}},
		{73, "no such file or directory", []string{"none/f"}},
		{73, "no such file or directory", []string{"--replace", "none/f"}},
		{73, "not a directory", []string{"--replace", "/dev/null/f"}},
		{0, "", []string{"link/../sub/g"}}, {0, "", []string{"--replace", "link/../sub/g"}}, // there is no ./sub
	} {
		r := s.put(big, c.words...)
		if r.Status != c.status || (r.Err == "") != (c.says == "") || strings.Count(r.Err, "\n") > 1 ||
			!strings.Contains(r.Err, c.says) {
			t.Errorf("%q: %+v, want status %d and %q", c.words, r, c.status, c.says)
		}
		big = strings.ToUpper(big)
	}
	check.Equal(t, "it has the content", s.read(s.in("f")) == strings.ToLower(big), true)
	s.wantFiles("dir", "f", "link")
}

// mkatomic follows a link, as cmd > link does. The temporary file is beside the target, as
// rename(2) does not cross file systems.
func TestMkatomicReplacesALinksTargetKeepingOwnerAndPermissions(t *testing.T) {
	for _, words := range [][]string{{"--replace", "link"}, {"--replace", "link", "--", "cat"}} {
		s := newSubstage(t)
		mkdir(t, s.in("sub"), 0o755)
		s.in("sub/target", "old")
		must(t, os.Symlink("sub/target", s.in("link")))
		if os.Geteuid() == 0 {
			must(t, os.Chown(s.in("sub/target"), nobody, nobody))
		}
		must(t, os.Chmod(s.in("sub/target"), 0o640|os.ModeSetuid|os.ModeSetgid|os.ModeSticky))
		if r := s.put("new", words...); r.Status != 0 || r.Err != "" || s.read(s.in("sub/target")) != "new" {
			t.Errorf("%q: %+v", words, r)
		}
		info := get(os.Stat(s.in("sub/target")))(t)
		if owner := info.Sys().(*syscall.Stat_t); info.Mode() != 0o640 ||
			os.Geteuid() == 0 && (owner.Uid != nobody || owner.Gid != nobody) {
			t.Errorf("%q: mode %v, owner %d:%d", words, info.Mode(), owner.Uid, owner.Gid)
		}
		if to, err := os.Readlink(s.in("link")); err != nil || to != "sub/target" {
			t.Errorf("%q: the link: %q, %v", words, to, err)
		}
		s.wantFiles("link", "sub")
	}
}

func TestMkatomicNeedsReplaceToFollowADanglingLink(t *testing.T) {
	s := newStage(t)
	must(t, os.Symlink("target", s.in("link")))
	s.put("new", "link").Refused(t, 75, "exists already")
	if r := s.put("new", "--replace", "link"); r.Status != 0 || s.read(s.in("target")) != "new" {
		t.Errorf("%+v", r)
	}
	s.wantFiles("link", "target")
}

// Root may name a device as the output by mistake: the device stays.
func TestMkatomicReplacesOnlyRegularFiles(t *testing.T) {
	s := newStage(t)
	mkdir(t, s.in("dir"), 0o755)
	must(t, unix.Mkfifo(s.in("pipe"), 0o600))
	for _, name := range []string{"dir", "pipe"} {
		s.put("x", "--replace", name).Refused(t, 73, "is not a regular file")
	}
	if info, err := os.Lstat(s.in("pipe")); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("%v %v", info, err)
	}
	s.wantFiles("dir", "pipe")
}

// The caller would go on writing into the file that was replaced.
func TestMkatomicRefusesAFileNamedByADescriptor(t *testing.T) {
	s := newStage(t)
	c := s.command()
	c.Args = []string{"sh", "-c", `{ echo before; for f in /dev/stdout /proc/self/fd/1; do echo x | "$0" mkatomic --replace $f; echo $?; done; } >out; cat out`, helper.Binary(t)}
	if r := c.Run(t); r.Out != "before\n73\n73\n" || strings.Count(r.Err, "adlock: /dev/stdout: is an open file") != 1 {
		t.Errorf("%+v", r)
	}
	s.wantFiles("out")
}

func TestMkatomicOnAFullDiskKeepsTheOldFile(t *testing.T) {
	need.Root(t) // to mount file systems
	need.Namespaces(t, "--mount")
	s := newStage(t)
	mkdir(t, s.in("small"), 0o755)
	c := s.command()
	c.Args = []string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o size=64k none small || exit
cd small && echo old >f || exit
head -c 1000000 /dev/zero | "$0" mkatomic --replace f; echo "status $?"
head -c 1000000 /dev/zero | "$0" mkatomic g; echo "status $?"
"$0" mkatomic --replace f -- head -c 1000000 /dev/zero; echo "status $?"
cat f; ls -A`, c.Args[0]}
	r := c.Run(t)
	if r.Out != "status 74\nstatus 74\nstatus 74\nold\nf\n" || strings.Count(r.Err, "no space left on device") != 3 {
		t.Errorf("%s\n%s", r.Out, r.Err)
	}
}

// The content is on the disk before the name, and the name before mkatomic returns success.
func TestMkatomicIsDurable(t *testing.T) {
	need.Tools(t, "strace")
	for _, words := range [][]string{{"f"}, {"--replace", "f"}, {"f", "--", "cat"}, {"--replace", "f", "--", "cat"}} {
		s := newSubstage(t)
		if words[0] == "--replace" {
			s.in("f", "old")
		}
		words = append([]string{"mkatomic"}, words...)
		c := s.command(words...)
		c.Args = append([]string{"strace", "-f", "--seccomp-bpf", "-y", "-o", s.in("trace"),
			"-e", "trace=write,fsync,fdatasync,linkat,renameat,renameat2,rename"}, c.Args...)
		c.Stdin = "text"
		if r := c.Run(t); r.Status != 0 {
			t.Fatalf("%+v", r)
		}
		dir := regexp.QuoteMeta(s.dir)
		order := regexp.MustCompile(`(?s)write\(\d+<` + dir + `/[^>]+>, "text".*f(data)?sync\(\d+<` + dir +
			`/[^>]+>.* (linkat|rename)[^\n]*f".*fsync\(\d+<` + dir + `>`)
		if trace := s.read(s.in("trace")); !order.MatchString(trace) {
			t.Errorf("%q: not written, synced, named, synced:\n%s", words, trace)
		}
	}
}

func (s *stage) wantFiles(names ...string) {
	s.Helper()
	entries := get(os.ReadDir(s.dir))(s)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	check.Equal(s, "in the directory", strings.Join(found, " "), strings.Join(names, " "))
}

func TestMkatomicRefusesAClosedInput(t *testing.T) {
	s := newStage(t)
	s.in("f", "one")
	c := s.command()
	shell := func(redirection string) helper.Result {
		c.Args = []string{"sh", "-c", `exec "$0" mkatomic --replace f ` + redirection, helper.Binary(t)}
		return c.Run(t)
	}
	if r := shell("<&-"); r.Status != 64 || !oneLine(r.Err) || !strings.Contains(r.Err, "standard input: bad file descriptor") || s.read(s.in("f")) != "one" {
		t.Errorf("%+v, and the file holds %q", r, s.read(s.in("f")))
	}
	if r := shell("</dev/null"); r.Status != 0 || s.read(s.in("f")) != "" {
		t.Errorf("%+v, and the file holds %q", r, s.read(s.in("f")))
	}
}

func TestMkatomicStoresTheOutputOfACommand(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		words         []string
		content, says string
	}{
		{[]string{"f", "--", "echo", "one", "--", "two"}, "one -- two\n", ""},
		{[]string{"--replace", "f", "--", "cat"}, "input\n", ""},
		{[]string{"--replace", "--", "f", "--", "true"}, "", ""},
		{[]string{"--replace", "f", "--", "sh", "-c", "echo seen >&2; echo kept"}, "kept\n", "seen\n"},
	} {
		if r := s.put("input\n", c.words...); r != (helper.Result{Err: c.says}) || s.read(s.in("f")) != c.content {
			t.Errorf("%q: %+v", c.words, r)
		}
	}
	s.wantFiles("f")
}

func TestMkatomicOfAFailedCommandChangesNothing(t *testing.T) {
	s := newStage(t)
	s.in("f", "old")
	for status, words := range map[int][]string{
		5:   {"sh", "-c", "echo new; exit 5"},
		137: {"sh", "-c", "echo new; kill -KILL $$"},
		143: {"sh", "-c", "sleep 600 2>/dev/null & echo new; kill -TERM $$"}, // the sleep that is left does not delay mkatomic
	} {
		r := s.adlock(append([]string{"mkatomic", "--replace", "f", "--"}, words...)...)
		if r.Status != status || r.Out+r.Err != "" || s.read(s.in("f")) != "old" {
			t.Errorf("%q: %+v, and the file holds %q", words, r, s.read(s.in("f")))
		}
	}
	for _, pid := range helper.With("ADLOCK_DIR=" + s.locks) {
		_ = unix.Kill(pid, unix.SIGKILL) // it may have ended by itself
	}
	s.refused(127, "nowhere-to-be-found: no such file", "mkatomic", "--replace", "f", "--", "nowhere-to-be-found")
	s.refused(75, "exists already", "mkatomic", "f", "--", "touch", "ran")
	s.refused(73, "no such file", "mkatomic", "none/f", "--", "touch", "ran")
	s.refused(64, "a --", "mkatomic", "f", "touch", "ran")
	s.refused(64, "a --", "mkatomic", "f", "--")
	s.wantFiles("f")
}

// As with $(command): mkatomic waits for background processes that may still print, and not for
// a daemon that has closed its output.
func TestMkatomicAwaitsAllOutputOfTheCommand(t *testing.T) {
	s := newStage(t)
	must(t, unix.Mkfifo(s.in("gate"), 0o600))
	p := s.command("mkatomic", "f", "--", "sh", "-c", "(read -r x <gate; echo late) & sleep 600 >/dev/null 2>&1 & echo soon; echo $! >daemon").Start(t)
	helper.Eventually(t, "the command is done", func() bool { return exists(s.in("daemon")) && len(helper.Children(p.PID)) > 0 })
	helper.Absent(t, s.in("f"))
	must(t, os.WriteFile(s.in("gate"), []byte("go\n"), 0))
	if status := p.Wait(t); status != 0 || s.read(s.in("f")) != "soon\nlate\n" {
		t.Errorf("status %d: %q", status, p.Output())
	}
	s.oneIsLeft()
}

func TestASignalledMkatomicEndsItsCommandAndLeavesNothing(t *testing.T) {
	s := newStage(t)
	s.in("f", "old")
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		for i, words := range [][]string{
			{"sh", "-c", "echo half; echo >ready; sleep 600; echo more"},
			{"sh", "-c", "exec 2>/dev/null; trap 'exit 0' HUP INT TERM; echo half; echo >ready; while :; do sleep 0.01; done"}, // succeeds though signalled
			{"sh", "-c", "sleep 600 & echo half; echo >ready"},                                                                 // has ended, but its child may still print
			nil, // standard input
		} {
			c := s.command("mkatomic", "--replace", "f")
			if words != nil {
				c = s.command(append([]string{"mkatomic", "--replace", "f", "--"}, words...)...)
			} else {
				c.Args = append([]string{"sh", "-c", "rm -f input; mkfifo input; (echo half; echo >ready; exec sleep 600) >input & exec \"$@\" <input", "sh"}, c.Args...)
			}
			p := c.Start(t)
			helper.Eventually(t, "it is ready", func() bool { return exists(s.in("ready")) })
			writer := 0
			if words == nil {
				writer = childOf(t, p.PID, "sleep")
			}
			helper.Eventually(t, "the file is in the making", func() bool { return len(temporaries(t, s.dir)) > 0 })
			if i == 0 { // a shell handles a signal only after it has started its next command
				childOf(t, childOf(t, p.PID, "sh"), "sleep")
			}
			p.Signal(t, sig)
			helper.Eventually(t, "the file in the making is gone", func() bool { return len(temporaries(t, s.dir)) == 0 })
			if writer != 0 {
				end(t, writer)
			}
			if by := p.EndedBy(t); by == 0 || p.Output() != "" {
				t.Errorf("%v, %q: ended by %d: %s", sig, words, by, p.Output())
			}
			check.Equal(t, "the file", s.read(s.in("f")), "old")
			for _, left := range helper.With("ADLOCK_DIR=" + s.locks) {
				t.Errorf("%v, %q: process %d is left", sig, words, left)
				_ = unix.Kill(left, unix.SIGKILL)
			}
			must(t, os.Remove(s.in("ready")))
		}
	}
}

func temporaries(t *testing.T, dir string) []string {
	t.Helper()
	found := get(filepath.Glob(dir + "/.f*"))(t)
	return found
}

func TestMkatomicKeepsTheAccessControlList(t *testing.T) {
	s := newStage(t)
	must(t, os.WriteFile(s.in("f"), nil, 0o640))
	// user::rw- user:65534:rw- group::r-- mask::rw- other::---, in the form of the kernel (version 2: tag, bits, id).
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][3]uint32{{1, 6, ^uint32(0)}, {2, 6, 65534}, {4, 4, ^uint32(0)}, {16, 6, ^uint32(0)}, {32, 0, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(list, uint16(entry[0])), uint16(entry[1]))
		list = binary.LittleEndian.AppendUint32(list, entry[2])
	}
	if err := unix.Setxattr(s.in("f"), "system.posix_acl_access", list, 0); err != nil {
		need.Skip(t, "no access control lists here: "+err.Error())
	}
	s.put("new", "--replace", "f").Is(t, 0, "", "")
	kept := make([]byte, 1000)
	n, _ := unix.Getxattr(s.in("f"), "system.posix_acl_access", kept)
	check.Equal(t, "the list", string(kept[:max(0, n)]), string(list))
}
