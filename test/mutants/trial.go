package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// target is the package whose tests are tried.
type target struct {
	Dir        string
	ImportPath string
	Name       string
	GoFiles    []string // for this system and these tags
	Module     struct{ Dir string }

	tags string
	work string // a directory for what is built
	jobs int    // how many mutants are tried at a time
}

// load asks go for a package's files.
func load(pattern, tags string) (*target, error) {
	out, err := exec.Command("go", "list", "-json", "-tags", tags, pattern).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, err)
	}
	t := &target{tags: tags, jobs: 1}
	if err := json.Unmarshal(out, t); err != nil {
		return nil, err
	}
	t.work, err = subdirectory("")
	return t, err
}

// subdirectory makes one that other users can look into: tests run the binary as
// them.
func subdirectory(of string) (string, error) {
	dir, err := os.MkdirTemp(of, "mutants")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// mutants lists those of all the package's files.
func (t *target) mutants() ([]mutant, error) {
	var all []mutant
	for _, file := range t.GoFiles {
		path := filepath.Join(t.Dir, file)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(t.Module.Dir, path)
		if err != nil {
			return nil, err
		}
		found, err := find(name, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (t *target) binary() string { return filepath.Join(t.work, "tests") }

// build makes the test binary; what go says where it does not compile.
func (t *target) build(options ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-tags", t.tags, "-ldflags=-s -w", "-o", t.binary()}, options...)
	out, err := exec.Command("go", append(args, t.ImportPath)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", t.ImportPath, err, out)
	}
	return nil
}

// buildMutant builds one mutant by itself: those at the top level.
func (t *target) buildMutant(m mutant) error {
	source, err := os.ReadFile(filepath.Join(t.Module.Dir, m.file))
	if err != nil {
		return err
	}
	return t.buildOverlaid(map[string][]byte{m.file: m.apply(source)})
}

// buildOverlaid is build with other files in place of the package's, or beside them.
func (t *target) buildOverlaid(files map[string][]byte) error {
	replace := map[string]string{}
	for name, content := range files {
		changed := filepath.Join(t.work, filepath.Base(name))
		if err := os.WriteFile(changed, content, 0o600); err != nil {
			return err
		}
		replace[filepath.Join(t.Module.Dir, name)] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := filepath.Join(t.work, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return err
	}
	return t.build("-gcflags=-e", "-overlay", overlay)
}

// buildAll builds all mutants into one binary, save those at the top level, and
// returns the numbers of those that it holds. Those that the compiler complains
// about are left out and the rest built again.
func (t *target) buildAll(mutants []mutant) (map[int]bool, error) {
	in := map[int]bool{}
	for i, m := range mutants {
		if m.function != "" {
			in[i+1] = true
		}
	}
	for {
		files, schemas, err := t.schemas(mutants, in)
		if err != nil {
			return nil, err
		}
		err = t.buildOverlaid(files)
		if err == nil {
			return in, nil
		}
		before := len(in)
		for _, at := range complaint.FindAllStringSubmatch(err.Error(), -1) {
			line, _ := strconv.Atoi(at[2])
			if s := schemas[at[1]]; s != nil {
				delete(in, s.at(line))
			}
		}
		if len(in) == before {
			return nil, err
		}
	}
}

// complaint is what the compiler's begin with.
var complaint = regexp.MustCompile(`(?m)^(?:.*/)?([^/\s]+\.go):(\d+):\d+: `)

// schemas rewrites the files that have mutants, by path and by base name.
func (t *target) schemas(mutants []mutant, in map[int]bool) (map[string][]byte, map[string]*schema, error) {
	byFile := map[string][]numbered{}
	for i, m := range mutants {
		if in[i+1] {
			byFile[m.file] = append(byFile[m.file], numbered{m, i + 1})
		}
	}
	files, schemas := map[string][]byte{}, map[string]*schema{}
	for file, own := range byFile {
		path := filepath.Join(t.Module.Dir, file)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		s, err := newSchema(path, source, own)
		if err != nil {
			return nil, nil, err
		}
		files[file], schemas[filepath.Base(file)] = []byte(s.text.String()), s
		files[filepath.Join(filepath.Dir(file), "mutant__.go")] = fmt.Appendf(nil, selectorFile, t.Name)
	}
	return files, schemas, nil
}

// What may come of a run of the tests.
var (
	errCaught  = errors.New("a test failed")
	errTimeout = errors.New("the tests took too long")
)

// run runs the tests that match, in a pid namespace of their own: a mutant of
// code that signals must reach nobody else, and leaves nothing running. The
// shell is the namespace's init: it reaps, and takes no signal meant for a test.
// A test that is skipped would catch nothing. The mutant is one that the binary
// holds, or "".
func (t *target) run(mutant, match string, limit time.Duration, options ...string) error {
	scratch, err := os.MkdirTemp(t.work, "tmp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := os.Chmod(scratch, 0o777|os.ModeSticky); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := append(namespace(), "sh", "-c", `"$@"; exit $?`, "sh", t.binary(), "-test.failfast", "-test.run", match)
	command := exec.CommandContext(ctx, args[0], append(args[1:], options...)...)
	command.Dir = t.Dir
	command.Env = append(os.Environ(), "TMPDIR="+scratch, "GOCOVERDIR="+scratch, "ADLOCK_TEST_SKIP=no", selector+"="+mutant)
	err = command.Run()
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return errTimeout
	case errors.As(err, &exit):
		return errCaught
	}
	return err
}

// namespace is the command that runs another with pids of its own, which all
// end with it.
func namespace() []string {
	args := []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--map-root-user")
	}
	return args
}

// tests lists what the binary can run.
func (t *target) tests() ([]string, error) {
	command := exec.Command(t.binary(), "-test.list", "^(Test|Fuzz|Example)")
	command.Dir = t.Dir
	out, err := command.Output()
	return strings.Fields(string(out)), err
}
