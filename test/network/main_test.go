// Package network tests adlock beyond one machine, on real servers: etcd as one node and as
// three, and vsftpd, started here on the loopback. A host is a lock directory of its own, cut
// off by a relay between it and the server; in namespace_test.go it has a network of its own,
// and the cable is pulled.
package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"adlock/test/support/helper"
)

func TestMain(m *testing.M) { helper.Main(m) }

var buildLocksmith = sync.OnceValue(func() error {
	command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o",
		filepath.Join(beside, "adlock-locksmith"), "./cmd/adlock-locksmith")
	command.Dir = helper.Root()
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	if err != nil {
		err = &buildError{err, string(output)}
	}
	return err
})

type buildError struct {
	error
	output string
}

func (e *buildError) Error() string { return e.error.Error() + "\n" + e.output }

// beside is the directory of the helper program.
var beside string

// binary returns the helper program, with the locksmith beside it.
func binary(t testing.TB) string {
	t.Helper()
	path := helper.Binary(t)
	beside = filepath.Dir(path)
	if err := buildLocksmith(); err != nil {
		t.Fatal(err)
	}
	return path
}

var itoa = strconv.Itoa
