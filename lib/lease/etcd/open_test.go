package etcd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/must"
)

func TestEachMemberOfAnAddressNeedsHostAndPort(t *testing.T) {
	bad := []string{"", "a", "127.0.0.1", "a:", ":2379", "a:2379,b", "a:23x9", "a:65536", "[::1]", "::1", "bob@a:2379"}
	for _, members := range append(bad, "a:2379", "127.0.0.1:1,b:2379", "[::1]:2379") {
		s, err := Open(Scheme + members + "/prod")
		if isBad := slices.Contains(bad, members); isBad != (err != nil) || isBad && fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: error %v", members, err)
		}
		if err == nil {
			s.Close()
		}
	}
}

func TestAnErrorNamesTheAddressWithoutThePassword(t *testing.T) {
	_, err := Open(Scheme + "bob:secret@a:2379,b:2379/prod")
	if fault.KindOf(err) != fault.Usage || strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "etcd://a:2379,b:2379/prod: ") {
		t.Error(err)
	}
}

func TestAnErrorAboutACertificateNamesFileOrVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file.pem")
	must.Do(t, os.WriteFile(file, []byte("no certificate\n"), 0o600))
	for want, set := range map[string][3]string{
		"ETCDCTL_CERT, ETCDCTL_KEY: only one of them is set, and a certificate goes with its key": {"", file, ""},
		file + ": is no certificate for the key " + file + ": ":                                   {"", file, file},
		file + ": holds no certificate":                                                           {file, "", ""},
	} {
		t.Setenv("ETCDCTL_CACERT", set[0])
		t.Setenv("ETCDCTL_CERT", set[1])
		t.Setenv("ETCDCTL_KEY", set[2])
		if _, err := Open(Scheme + "a:2379/prod"); fault.KindOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", set, err)
		}
	}
}

func TestAPrivatePasswordFileWinsOverVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	must.Do(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	must.Do(t, os.Chmod(file, 0o644)) // whatever the umask
	t.Setenv("ADLOCK_ETCD_PASSWORD_FILE", file)
	t.Setenv("ETCDCTL_USER", "alice:other")
	t.Setenv("ETCDCTL_PASSWORD", "another")
	if _, err := Open(Scheme + "a:2379/prod"); fault.KindOf(err) != fault.NotPermitted || !strings.HasPrefix(err.Error(), file+": ") {
		t.Errorf("a file that others may read: %v", err)
	}
	must.Do(t, os.Chmod(file, 0o600))
	s, err := Open(Scheme + "a:2379/prod")
	if err != nil || s.config.Username != "alice" || s.config.Password != "s3cret" {
		t.Errorf("%v", err)
	}
	t.Setenv("ETCDCTL_USER", "")
	if _, err := Open(Scheme + "a:2379/prod"); fault.KindOf(err) != fault.Usage {
		t.Errorf("a password for no user: %v", err)
	}
}
