package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/server"
)

func monotonic(age time.Duration) string { return (process.Monotonic() - age).String() }

// store has what all stores beyond this machine share: a URL, and a lock directory for the runlog.
type store struct {
	url string
	dir string
}

func (s store) vars() []string { return []string{"ADLOCK_STORE=" + s.url, "ADLOCK_DIR=" + s.dir} }
func (s store) record() string { return directory{s.dir}.record() }
func (s store) settled() bool  { return true } // an owner adds nothing here

// stores numbers the parts of the servers: each world has its own.
var stores atomic.Int64

func number() string { return strconv.FormatInt(stores.Add(1), 10) }

// etcdStore is a part of an etcd of one node.
type etcdStore struct {
	store
	node, atom string
}

// newEtcd starts an etcd and returns a function that makes places in it.
func newEtcd(t testing.TB) func(testing.TB) place {
	t.Helper()
	client := server.Cluster(t, 1, func(m *server.Etcd) string { return m.Peer })[0].Client
	return func(t testing.TB) place {
		prefix := "/question/" + number()
		return etcdStore{store{"etcd://" + client + prefix, helper.Dir(t)}, client, prefix + "/" + helper.AtomName + "/"}
	}
}

func (s etcdStore) ctl(stdin string, args ...string) (string, error) {
	c := exec.Command("etcdctl", append([]string{"--endpoints", s.node, "--dial-timeout=90s", "--command-timeout=90s"}, args...)...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.Output()
	return string(out), err
}

// change changes one value under a key, and leaves its lease.
func (s etcdStore) change(t testing.TB, key, name, value string) {
	t.Helper()
	text := strings.TrimSuffix(get(s.ctl("", "get", "--print-value-only", key))(t), "\n") // etcdctl's own
	get(s.ctl(string(helper.Replaced(t, []byte(text), name, value)), "put", "--ignore-lease", key))(t)
}

func (s etcdStore) files() []string {
	keys, _ := s.ctl("", "get", "--prefix", "--keys-only", s.atom+"line/") // a failure shows as no lock
	return strings.Fields(keys)
}

func (s etcdStore) setLast(t testing.TB, completed time.Time, started time.Duration) {
	t.Helper()
	s.change(t, s.atom+"last", "completed", completed.UTC().Format(time.RFC3339Nano))
	if started > 0 {
		s.change(t, s.atom+"last", "started", ago(started))
	}
}

func (s etcdStore) setAge(t testing.TB, age time.Duration) {
	t.Helper()
	for _, key := range s.files() {
		s.change(t, key, "monotonic", monotonic(age))
	}
}

func (s etcdStore) waiting() (n int) {
	for _, key := range s.files() {
		if strings.HasPrefix(key, s.atom+"line/w/") {
			n++
		}
	}
	return n
}

// ftpStore is a directory of an FTP server.
type ftpStore struct {
	store
	root, password string
	uid            int
}

// newFTP starts a vsftpd and returns a function that makes places in it.
func newFTP(t testing.TB) func(testing.TB) place {
	t.Helper()
	f := server.StartFTP(t, helper.FreePort(t, "127.0.0.1"), "")
	info, err := os.Stat(f.Root)
	must(t, err)
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	return func(t testing.TB) place {
		name := number()
		part := ftpStore{store{"ftp://anonymous@" + f.Address + "/locks/" + name, helper.Dir(t)}, f.Root + "/" + name, f.Password, uid}
		must(t, os.Mkdir(part.root, 0o755))
		must(t, os.Chown(part.root, uid, -1))
		return part
	}
}

func (s ftpStore) vars() []string {
	return append(s.store.vars(), "ADLOCK_FTP_PASSWORD_FILE="+s.password)
}

func (s ftpStore) files() []string {
	owners, _ := filepath.Glob(s.root + "/lock." + helper.AtomName + ".*/owner")
	return owners
}

func (s ftpStore) setLast(t testing.TB, completed time.Time, started time.Duration) {
	t.Helper()
	last := s.root + "/last." + helper.AtomName
	if started > 0 {
		helper.Rewrite(t, last, "started", ago(started))
		helper.Rewrite(t, last, "completed", completed.UTC().Format(time.RFC3339Nano))
	}
	must(t, os.Chtimes(last, completed, completed))
}

// setAge dates the record, and makes the heartbeat that a live owner of that age has.
func (s ftpStore) setAge(t testing.TB, age time.Duration) {
	t.Helper()
	for _, owner := range s.files() {
		// A heartbeat's name has its owner's age.
		before, _ := filepath.Glob(filepath.Dir(owner) + "/beat.*")
		for _, beat := range before {
			must(t, os.Remove(beat))
		}
		beat := fmt.Sprintf("%s/beat.%d", filepath.Dir(owner), int(age.Seconds()))
		must(t, os.WriteFile(beat, nil, 0o600))
		must(t, os.Chown(beat, s.uid, -1))
		at := time.Now().Add(-age)
		must(t, os.Chtimes(owner, at, at))
	}
}
