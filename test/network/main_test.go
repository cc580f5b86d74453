// Package network tests adlock beyond one machine, on real servers: etcd as one node and as three, and vsftpd,
// started here on the loopback. A host is a lock directory of its own, cut off by a relay between it and the server.
package network

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/server"
)

// Most of the tests wait most of the time.
func TestMain(m *testing.M) {
	helper.SideBySide(8)
	file, err := os.CreateTemp("", "adlock-test-password-")
	if err == nil {
		_, err = file.WriteString(server.Secret)
	}
	if err = errors.Join(err, file.Close(), os.Setenv("ADLOCK_FTP_PASSWORD_FILE", file.Name())); err != nil { // for the stores that tests open
		panic(err)
	}
	helper.Main(m, func() { os.Remove(file.Name()) })
}

// beside is the directory of the helper program.
var beside string

var buildLocksmith = sync.OnceValue(func() error { return helper.Build(filepath.Join(beside, "adlock-locksmith")) })

// binary returns the helper program, with the locksmith beside it.
func binary(t testing.TB) string {
	t.Helper()
	path := helper.Binary(t)
	beside = filepath.Dir(path)
	must.Do(t, buildLocksmith())
	return path
}

var itoa = strconv.Itoa
