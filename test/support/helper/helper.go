// Package helper has what the tests of several packages share: the helper program, built as by
// the Makefile, and careful ways to start and end processes.
package helper

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Main runs the tests, calls what is to be done afterwards, and removes what Binary built. A
// package that uses Binary calls Main from its TestMain.
func Main(m *testing.M, afterwards ...func()) {
	status := m.Run()
	for _, do := range afterwards {
		do()
	}
	if scratch != "" {
		os.RemoveAll(scratch)
	}
	os.Exit(status)
}

// SideBySide lets n parallel tests run at once, also with fewer processors: for tests that mostly
// wait. TestMain calls it.
func SideBySide(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// scratch is the directory of built programs; "" until the first is built.
var scratch string

// Root returns the project's directory, which is above the directory in which `go test` starts a test.
func Root() string { return root }

var root = func() string {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}()

var build = sync.OnceValues(func() (string, error) {
	var err error
	if scratch, err = os.MkdirTemp("", "adlock-test-"); err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "adlock")
	return path, errors.Join(Build(path), Build(path+"-report"))
})

// Binary returns the path of the helper program, built once for the package.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Changes are source files that a program for tests is built with, beside those of the tree or in
// their place: their texts, by their paths in the tree.
type Changes map[string]string

// Brief makes a program watch only a second or two whether a job works; Hasty makes it learn limits
// of seconds, too.
var (
	Brief = Changes{"lib/idle/brief.go": `package idle

import "time"

func init() { Shortest, Longest = time.Second, 2*time.Second }
`}
	Hasty = Changes{"lib/idle/brief.go": Brief["lib/idle/brief.go"], "lib/learn/hasty.go": `package learn

import "time"

func init() { Floor, Ceiling = 3*time.Second, 10*time.Second }
`}
	// A gated program enforces a limit once the file $LIMIT_OVER is there.
	gated = Changes{"lib/supervise/gated.go": `package supervise

import (
	"os"
	"time"
)

func init() {
	newTimer = func(time.Duration) *time.Timer {
		timer := time.NewTimer(time.Hour)
		go func() {
			for over := os.Getenv("LIMIT_OVER"); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(over); err == nil {
					timer.Reset(0)
					return
				}
			}
		}()
		return timer
	}
}
`}
	pinned = Changes{"cmd/adlock/pinned.go": `package main

import "runtime"

func init() { runtime.LockOSThread() }
`}
)

var buildPinned, buildBrief, buildGated = builder("pinned", pinned), builder("brief", Brief), builder("gated", gated)

// builder builds the helper program with these changes, once for the package.
func builder(name string, c Changes) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir := filepath.Join(scratch, name)
		path := filepath.Join(dir, "adlock")
		return path, errors.Join(os.Mkdir(dir, 0o700), c.Build(path))
	})
}

// Pinned returns the path of the helper program built so that its main function makes all
// system calls on its first thread, where strace(1) counts them.
func Pinned(t testing.TB) string {
	t.Helper()
	Binary(t) // for the directory
	path, err := buildPinned()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// BriefBinary returns the path of the helper program that has the changes of Brief.
func BriefBinary(t testing.TB) string {
	t.Helper()
	Binary(t) // for the directory
	path, err := buildBrief()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Gated gives the atom a helper program whose supervisors end their job at its limit once over is
// called, and not before.
func (a *Atom) Gated(t testing.TB) (over func()) {
	t.Helper()
	Binary(t) // for the directory
	path, err := buildGated()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "adlock-over-") // unlike t.TempDir's, other users reach it
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "over")
	a.Bin, a.More = path, append(a.More, "LIMIT_OVER="+file)
	return func() {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Build builds the program that path is named after: static, as the Makefile does.
func Build(path string) error { return Changes(nil).Build(path) }

// Build does what the function Build does, in a tree with these changes.
func (c Changes) Build(path string) error {
	overlay, err := c.overlay(filepath.Dir(path))
	if err != nil {
		return err
	}
	return Compile(path, "./cmd/"+filepath.Base(path), "-overlay", overlay)
}

// Compile builds a package of the project into path: static, with the Makefile's flags, so that what
// programs share is compiled once, and with these options of go build.
func Compile(path, pack string, options ...string) error {
	flags := []string{"build", "-trimpath", "-tags", "urfave_cli_no_docs,grpcnotrace", "-ldflags", "-s -w", "-o", path}
	command := exec.Command("go", slices.Concat(flags, options, []string{pack})...)
	command.Dir, command.Env = Root(), append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

// overlay writes the changes below dir, and returns the file that names them for go build.
func (c Changes) overlay(dir string) (string, error) {
	replace := map[string]string{}
	for path, text := range c {
		changed := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(Root(), path)] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// Dir returns a fresh lock directory, mode 0700.
func Dir(t testing.TB) string {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a locksmith that releases may still write during the removal
		for end := time.Now().Add(Patience); os.RemoveAll(path) != nil && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
	})
	return path
}

// FreePort returns a HOST:PORT at which no process listens, for a server to be started. The port
// is below 32768: the system gives higher ones to outgoing connections, perhaps before the server
// has opened it. No two servers of this process get one port, or tests would share a server.
func FreePort(t testing.TB, ip string) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprint(ip, ":", 16384+rand.N(16384))
		if _, is := given.LoadOrStore(address, true); is {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

var given sync.Map // the addresses that FreePort has returned

// Patience is how long a test waits for what must happen soon: long enough for a busy machine,
// short enough for a person.
const Patience = 90 * time.Second

// Eventually waits until the claim holds, and fails the test after Patience.
func Eventually(t testing.TB, claim string, holds func() bool) {
	t.Helper()
	Within(t, Patience, claim, holds)
}

// Within is Eventually with another limit than Patience.
func Within(t testing.TB, patience time.Duration, claim string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so within %v: %s", patience, claim)
		}
	}
}

// IsClosed reports whether a channel, to which nothing is sent, is closed.
func IsClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Exists reports whether there is a file of that name, which may be a link to nowhere.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Lines waits until a file has at least that many lines, and returns them.
func Lines(t testing.TB, path string, least int) []string {
	t.Helper()
	var text []byte
	Eventually(t, path+" has its lines", func() bool {
		text, _ = os.ReadFile(path) // it is not there before the first line
		return strings.Count(string(text), "\n") >= least
	})
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Absent fails the test if the file is there.
func Absent(t testing.TB, path string) {
	t.Helper()
	if Exists(path) {
		t.Errorf("%s is there", path)
	}
}

// Contains fails the test unless the text has each of the words.
func Contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("no %q in:\n%s", word, text)
		}
	}
}
