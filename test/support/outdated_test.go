// Package support tests the scripts of this folder. The packages below it serve the other tests.
package support

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/must"
	"adlock/test/support/need"
)

// tree is a copy of the script among files that each name one module or package. In the
// registry, which serves as module proxy and for npm, all have a version 1.1.0.
func tree(t *testing.T) (script string, registry http.Handler) {
	t.Helper()
	need.Tools(t, "go", "npm")
	text := must.Get(os.ReadFile("outdated.sh"))(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"test/support/outdated.sh": string(text),
		"go.mod":                   "module top\n\ngo 1.26\n\nrequire (\n\texample.test/behind v1.0.0\n\texample.test/newest v1.1.0\n)\n",
		"Makefile":                 "tool = $(GO) run\nheld = $(tool) example.test/held/cmd/held@v1.0.0 # it is good as it is\n",
		"bats/package.json":        "{\n  \"devDependencies\": {\n    \"shellsuite\": \"1.0.0\"\n  }\n}\n",
	} {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return filepath.Join(dir, "test/support/outdated.sh"), http.HandlerFunc(answer)
}

// answer answers like a module proxy and npm's registry.
func answer(to http.ResponseWriter, asked *http.Request) {
	module, what, of := strings.Cut(strings.TrimPrefix(asked.URL.Path, "/"), "/@v/")
	switch {
	case !of && module == "shellsuite":
		to.Header().Set("Content-Type", "application/json")
		fmt.Fprint(to, `{"name":"shellsuite","dist-tags":{"latest":"1.1.0"},"versions":{"1.1.0":{"name":"shellsuite","version":"1.1.0"}}}`)
	case !of:
		http.NotFound(to, asked)
	case what == "list":
		fmt.Fprint(to, "v1.0.0\nv1.1.0\n")
	case strings.HasSuffix(what, ".info"):
		fmt.Fprintf(to, `{"Version":%q}`, strings.TrimSuffix(what, ".info"))
	default:
		fmt.Fprintf(to, "module %s\n", module)
	}
}

// ask runs the script with the registry at url.
func ask(t *testing.T, script, url string) (stdout, stderr string, status int) {
	t.Helper()
	var out, err strings.Builder
	run := exec.Command("sh", script)
	run.Env = append(os.Environ(), "GOPROXY="+url, "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOMODCACHE="+t.TempDir(),
		"npm_config_registry="+url, "npm_config_cache="+t.TempDir(), "npm_config_userconfig=/dev/null")
	run.Stdout, run.Stderr = &out, &err
	_ = run.Run()
	return out.String(), err.String(), run.ProcessState.ExitCode()
}

func TestAnOutdatedVersionIsReportedWithItsFile(t *testing.T) {
	script, registry := tree(t)
	server := httptest.NewServer(registry)
	defer server.Close()
	stdout, stderr, status := ask(t, script, server.URL)
	want := `go.mod               example.test/behind v1.0.0 -> v1.1.0
Makefile             example.test/held v1.0.0 -> v1.1.0  (it is good as it is)
bats/package.json    shellsuite 1.0.0 -> 1.1.0
`
	if stdout != want || stderr != "" || status != 0 {
		t.Errorf("status %d, on standard error %q, and\n%sinstead of\n%s", status, stderr, stdout, want)
	}
}
