//go:build soak

package cron

// These tests try what `make release` makes: it is the same wherever it is made, lintian has no complaint, one line
// guards a crontab of a bare Debian, and upgrade, removal and purge harm no job.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// long is how long making all packages may take on a busy machine.
const long = 8 * time.Minute

// sources are what a release is made of.
var sources = []string{"Makefile", "cmd", "lib", "sh", "test/examples", "go.mod", "go.sum", "README.md", "CHANGELOG.md", "LICENSE"}

// released makes a signed release once for all tests, and a package of an older version. It
// returns the directory of the sources, with build/release and build/older.
func released(t *testing.T) string {
	t.Helper()
	need.Tools(t, "make", "go", "sha256sum", "ssh-keygen")
	if err := makes(helper.Root(), "tools"); err != nil {
		need.Skip(t, "what makes packages is not to be had:", err)
	}
	return must.Get(makeOnce())(t)
}

var makeOnce = sync.OnceValues(func() (dir string, err error) {
	if scratch, err = os.MkdirTemp("", "adlock-packages-"); err != nil {
		return "", err
	}
	dir = filepath.Join(scratch, "adlock")
	key := filepath.Join(scratch, "key")
	err = errors.Join(
		runIn("", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "releases", "-f", key),
		copySources(dir))
	if err == nil {
		err = makes(dir, "deb", "RELEASE=build/older", "VERSION=0.0.1", "COMMIT=older", "MACHINES=amd64")
	}
	if err == nil {
		err = makes(dir, "release", "-o", "soaked", "KEY="+key) // no soak has tested these sources
	}
	return dir, err
})

func copySources(dir string) error {
	for _, source := range sources {
		to := filepath.Join(dir, source)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := runIn("", "cp", "-r", "-p", filepath.Join(helper.Root(), source), to); err != nil {
			return err
		}
	}
	return nil
}

// makes runs make for a fixed commit and date, without the variables of a make that runs this test.
func makes(dir string, words ...string) error {
	return runIn(dir, append([]string{"env", "MAKEFLAGS=", "MAKELEVEL=", "SOURCE_DATE_EPOCH=1795000000", "make", "COMMIT=tried"}, words...)...)
}

// runIn runs a command to its end; its output is part of the error.
func runIn(dir string, args ...string) error {
	command := exec.Command(args[0], args[1:]...)
	command.Dir, command.Env = dir, need.Clean()
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%q: %w\n%s", args, err, output)
	}
	return nil
}

// want runs a command and expects it to succeed.
func want(t *testing.T, args ...string) helper.Result {
	t.Helper()
	r := helper.Command{Args: args, Limit: long}.Run(t)
	if r.Status != 0 {
		t.Fatalf("%q: status %d\n%s%s", args, r.Status, r.Out, r.Err)
	}
	return r
}

// sums returns the checksums of the files below a directory, with their permissions.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		found[strings.TrimPrefix(path, dir)] = info.Mode().Perm().String() + " " + hex.EncodeToString(sum[:])
		return err
	})
	must.Do(t, err)
	return found
}

// mustEqual compares two directories by their checksums.
func mustEqual(t *testing.T, claim string, got, want map[string]string) {
	t.Helper()
	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		check.Equal(t, claim+": "+name, got[name], want[name])
	}
}

func TestBuildsInTwoDirectoriesGiveTheSamePackages(t *testing.T) {
	t.Parallel()
	first := released(t)
	second := filepath.Join(t.TempDir(), "another", "deeper")
	must.Do(t, copySources(second))
	// Other times, permissions and zone: only the commit's date counts.
	must.Do(t, runIn(second, "find", ".", "-exec", "touch", "-d", "2001-01-01", "{}", "+"))
	must.Do(t, runIn(second, "sh", "-c", "umask 077; MAKEFLAGS= MAKELEVEL= TZ=Asia/Tokyo SOURCE_DATE_EPOCH=1795000000 exec make COMMIT=tried deb rpm apk sbom"))
	got, want := sums(t, second+"/build/release"), sums(t, first+"/build/release")
	delete(want, "/SHA256SUMS")
	delete(want, "/SHA256SUMS.sig")
	for name := range got { // the umask differs
		got[name], want[name] = got[name][10:], want[name][min(10, len(want[name])):]
	}
	if mustEqual(t, "made again", got, want); len(got) != 12 {
		t.Errorf("%d files were made, want deb, rpm, apk and three bills of materials for two machines", len(got))
	}
}

func TestAReleaseHasSignedChecksums(t *testing.T) {
	t.Parallel()
	dir := released(t) + "/build/release"
	check := func() int {
		return helper.Command{Args: []string{"sha256sum", "--check", "--quiet", "SHA256SUMS"}, Dir: dir, Limit: long}.Run(t).Status
	}
	if check() != 0 {
		t.Error("the checksums are not those of the files")
	}
	if text, err := os.ReadFile(dir + "/SHA256SUMS"); err != nil || strings.Count(string(text), "\n") != 12 {
		t.Errorf("%v\n%s", err, text)
	}
	public := must.Get(os.ReadFile(filepath.Join(scratch, "key.pub")))(t)
	signers := filepath.Join(t.TempDir(), "signers")
	must.Do(t, os.WriteFile(signers, append([]byte("releases "), public...), 0o600))
	for input, status := range map[string]int{"": 0, "\n": 255} {
		text := must.Get(os.ReadFile(dir + "/SHA256SUMS"))(t)
		r := helper.Command{Args: []string{"ssh-keygen", "-Y", "verify", "-f", signers, "-I", "releases", "-n", "file", "-s", dir + "/SHA256SUMS.sig"},
			Stdin: string(text) + input}.Run(t)
		r.Is(t, status, "…", "…")
	}
}

func TestTheBillOfMaterialsNamesEveryModuleOfEveryProgram(t *testing.T) {
	t.Parallel()
	dir := released(t)
	for _, program := range []string{"adlock", "adlock-report", "adlock-locksmith"} {
		bills, err := filepath.Glob(dir + "/build/release/" + program + "_*_arm64.cdx.json")
		if err != nil || len(bills) != 1 {
			t.Fatalf("%v %v", bills, err)
		}
		text := must.Get(os.ReadFile(bills[0]))(t)
		var bill struct {
			BOMFormat  string
			Components []struct{ PURL string }
		}
		if err := json.Unmarshal(text, &bill); err != nil || bill.BOMFormat != "CycloneDX" {
			t.Fatalf("%v\n%s", err, text)
		}
		path := dir + "/build/arm64/" + program
		if _, sum, _ := strings.Cut(sums(t, path)[""], " "); !strings.Contains(string(text), sum) {
			t.Errorf("%s: its checksum is not in the bill", program)
		}
		var got, modules []string
		for _, c := range bill.Components {
			got = append(got, c.PURL)
		}
		for _, line := range strings.Split(want(t, "go", "version", "-m", path).Out, "\n") {
			switch f := strings.Fields(line); {
			case len(f) == 2 && f[0] == path+":":
				modules = append(modules, "pkg:golang/std@"+f[1])
			case len(f) > 2 && f[0] == "dep":
				modules = append(modules, "pkg:golang/"+f[1]+"@"+f[2])
			}
		}
		slices.Sort(got)
		slices.Sort(modules)
		if !slices.Equal(got, modules) || len(got) < 2 {
			t.Errorf("%s: the bill has %q, want %q", program, got, modules)
		}
	}
}

func TestPackagesContainTheLicencesOfAllModules(t *testing.T) {
	t.Parallel()
	need.Tools(t, "dpkg-deb", "zcat")
	deb := unpacked(t, "*_arm64.deb", `dpkg-deb -x "$1" .`)
	licences := want(t, "zcat", deb+"/usr/share/doc/adlock/copyright.modules.gz").Out
	texts := regexp.MustCompile(`(?m)^(\S+ \S+)\n=+$`).FindAllStringSubmatchIndex(licences, -1)
	told := map[string]bool{}
	for i, at := range texts {
		end := len(licences)
		if i+1 < len(texts) {
			end = texts[i+1][0]
		}
		if !strings.Contains(strings.ToLower(licences[at[1]:end]), "copyright") {
			t.Errorf("%s: no licence:\n%s", licences[at[2]:at[3]], licences[at[1]:end])
		}
		told[licences[at[2]:at[3]]] = true
	}
	for _, line := range strings.Split(want(t, "go", "version", "-m", deb+"/usr/bin").Out, "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "dep" && !told[f[1]+" "+f[2]] {
			t.Errorf("%s is not told of", f[1])
		}
	}
	if len(told) < 10 || !strings.HasPrefix(licences, "Go 1.") {
		t.Errorf("%d licences are told of", len(told))
	}
}

func TestLintianHasNoComplaintAboutTheDebs(t *testing.T) {
	t.Parallel()
	dir := released(t)
	need.Tools(t, "lintian")
	debs, err := filepath.Glob(dir + "/build/release/*.deb")
	if err != nil || len(debs) != 2 {
		t.Fatalf("%q, %v", debs, err)
	}
	r := helper.Command{Args: append([]string{"lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0"}, debs...), Limit: long}.Run(t)
	r.Is(t, 0, "", "…")
}

// unpacked returns the files that a package installs, by the package's own tools.
func unpacked(t *testing.T, pattern, how string) string {
	t.Helper()
	found, err := filepath.Glob(released(t) + "/build/release/" + pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	dir := t.TempDir()
	if r := (helper.Command{Args: []string{"sh", "-c", how, "sh", found[0]}, Dir: dir, Limit: long}).Run(t); r.Status != 0 {
		t.Fatalf("%s: %+v", pattern, r)
	}
	return dir
}

func TestRpmAndApkContainTheFilesOfTheDeb(t *testing.T) {
	t.Parallel()
	need.Tools(t, "dpkg-deb", "rpm2cpio", "cpio", "tar")
	for _, machine := range [][2]string{{"amd64", "x86_64"}, {"arm64", "aarch64"}} {
		deb := unpacked(t, "*_"+machine[0]+".deb", `dpkg-deb -x "$1" . && dpkg-deb -e "$1" .deb`)
		rpm := unpacked(t, "*."+machine[1]+".rpm", `rpm2cpio "$1" | cpio -idm --quiet --no-absolute-filenames`)
		apk := unpacked(t, "*_"+machine[1]+".apk", `tar -xzf "$1"`)
		control := sums(t, deb+"/.deb")
		asks := must.Get(os.ReadFile(deb + "/.deb/prerm"))(t)
		must.Do(t, os.RemoveAll(deb+"/.deb"))
		want := sums(t, deb)
		for _, own := range []string{"/usr/share/doc/adlock/changelog.Debian.gz", "/usr/share/lintian/overrides/adlock"} {
			if want[own] == "" {
				t.Errorf("the deb has no %s", own)
			}
			delete(want, own)
		}
		const debian, others = "/usr/share/zsh/vendor-completions/_adlock", "/usr/share/zsh/site-functions/_adlock"
		want[others] = want[debian]
		delete(want, debian)
		if len(want) < 30 || want["/usr/lib/adlock/shell"] == "" || want["/usr/share/man/man1/adlock.1.gz"] == "" {
			t.Errorf("the deb holds only %q", slices.Sorted(maps.Keys(want)))
		}
		mustEqual(t, "rpm for "+machine[0], sums(t, rpm), want)
		found, _ := filepath.Glob(released(t) + "/build/release/*." + machine[1] + ".rpm")
		if text, err := os.ReadFile(found[0]); err != nil || !bytes.Contains(text, asks) { // the header is not compressed
			t.Errorf("the rpm does not ask before its removal: %v", err)
		}
		got := sums(t, apk)
		check.Equal(t, "what the apk runs before its removal", got["/.pre-deinstall"][10:], control["/prerm"][10:])
		maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasPrefix(name, "/.") })
		mustEqual(t, "apk for "+machine[0], got, want)
	}
}
