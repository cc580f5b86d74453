package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
)

// scene is a directory with the programs, the lock directory and the scripts.
type scene struct {
	ctx     context.Context // ends the scripts
	dir     string
	env     []string
	scripts int
}

// newScene makes a scene. It copies the programs, as an install does: a file as the linker wrote it
// starts a tenth slower, because its pages are in the cache one by one.
func newScene(ctx context.Context, helper string) (*scene, error) {
	dir, err := os.MkdirTemp("", "adlock-bench-")
	if err != nil {
		return nil, err
	}
	s := &scene{ctx: ctx, dir: dir, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "ADLOCK_HOST=bench",
		"ADLOCK_DIR=" + dir + "/locks", "ADLOCK_BIN=" + dir + "/adlock", "LIBRARY=" + root() + "/sh/adlock.sh",
	}}
	for _, program := range []string{"adlock", "adlock-report"} {
		err = errors.Join(err, copied(filepath.Join(filepath.Dir(helper), program), filepath.Join(dir, program)))
	}
	err = errors.Join(err, os.Mkdir(dir+"/locks", 0o700), s.build("empty"), s.build("start"))
	if err != nil {
		s.close()
	}
	return s, err
}

func (s *scene) close() { os.RemoveAll(s.dir) }

// closeOnSignal removes the scene at a signal. Started processes end by themselves: they read from
// this process, or wait for something that it holds.
func (s *scene) closeOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	<-signals
	s.close()
	os.Exit(130)
}

// build builds a Go program that shows what the runtime alone costs.
func (s *scene) build(name string) error {
	built := filepath.Join(s.dir, name+"-built")
	command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built, "./test/bench/testdata/"+name+".go")
	command.Dir, command.Env = root(), append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return copied(built, filepath.Join(s.dir, name))
}

func copied(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

func (s *scene) has(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}

// prelude begins every script. Its function bare takes and releases flock(1) on a file, without a
// library. mksh and ksh93 pass no descriptor that exec has opened to a command.
func prelude(shell string) string {
	if shell == "mksh" || shell == "ksh93" {
		return "bare() { flock -n 9 9>\"$1\"; }\n"
	}
	return "bare() { exec 9>\"$1\"; flock -n 9; set -- \"$?\"; exec 9>&-; return \"$1\"; }\n"
}

// script is the script of a way. It prints a line before its cycles and one after them.
func (w way) script(shell string) string {
	return fmt.Sprintf("%s%s\necho\ni=0\nwhile [ \"$i\" -lt %d ]; do\n\ti=$((i + 1))\n\t%s\ndone\necho\n",
		prelude(shell), w.start, w.cycles, w.cycle)
}

// write writes a script into a directory of its own, so that every script has the name `script`,
// which is the program of its atoms.
func (s *scene) write(text string) (path string, err error) {
	s.scripts++
	dir := filepath.Join(s.dir, "script."+strconv.Itoa(s.scripts))
	path = filepath.Join(dir, "script")
	return path, errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, []byte(text), 0o600))
}

// command returns the command that runs a script in the scene.
func (s *scene) command(shell, path string) *exec.Cmd {
	words := append(strings.Fields(shell), path)
	c := exec.CommandContext(s.ctx, words[0], words[1:]...)
	c.Dir, c.Env, c.Stderr = s.dir, s.env, new(bytes.Buffer)
	return c
}

// scripted runs a way's script, and returns the microseconds of a cycle, or of the whole
// script.
func (s *scene) scripted(w way, shell string) func(*scene, string) (float64, string, error) {
	path, failed := s.write(w.script(shell))
	return func(s *scene, shell string) (float64, string, error) {
		c := s.command(shell, path)
		out, err := c.StdoutPipe()
		if err = errors.Join(failed, err); err != nil {
			return 0, "", err
		}
		from := bufio.NewReader(out)
		started := time.Now()
		if err := c.Start(); err != nil {
			return 0, "", err
		}
		_, first := from.ReadString('\n')
		began := time.Now()
		_, second := from.ReadString('\n')
		took := time.Since(began)
		if err := errors.Join(c.Wait(), first, second); err != nil {
			return 0, "", fmt.Errorf("%w: %s", err, c.Stderr)
		}
		if w.whole {
			return micros(time.Since(started)), "", nil
		}
		return micros(took) / float64(w.cycles), "", nil
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// last makes the last lock of an atom of the scripts, completed at a time.
func (s *scene) last(dir, operator, operand string, completed time.Time) error {
	a := atom.Atom{Program: "script", Host: "bench", Operator: operator, Operand: operand}
	return s.stamp(filepath.Join(dir, a.Name().LastLock()), completed)
}

func (s *scene) stamp(path string, at time.Time) error {
	err := os.Chtimes(path, at, at)
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at))
}

// machine describes the helper, the machine, the bench and the date.
func (s *scene) machine(b bench) string {
	var name unix.Utsname
	_ = unix.Uname(&name)
	version, _ := exec.Command(filepath.Join(s.dir, "adlock"), "--version").Output()
	form := "quick"
	if b.full {
		form = "full"
	}
	return fmt.Sprintf("%s; %d processors (%s), Linux %s, %s; the %s form, %d rounds, %s",
		strings.TrimSpace(string(version)), runtime.NumCPU(), processor(), unix.ByteSliceToString(name.Release[:]),
		filesystem(s.dir), form, b.rounds, time.Now().UTC().Format(time.DateOnly))
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// filesystem returns the type of the lock directory's file system.
func filesystem(path string) string {
	text, _ := exec.Command("stat", "-f", "-c", "%T", path).Output()
	return strings.TrimSpace(string(text))
}
