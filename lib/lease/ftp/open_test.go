package ftp

import (
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/must"
	_ "adlock/test/support/need" // the same umask, however the suite is started
)

func TestNetrcIsReadByMachineAndLogin(t *testing.T) {
	const text = `machine a login x password one
machine b login x password two
 login y password three
default login z password four`
	for _, c := range []struct{ host, user, want string }{
		{"a", "x", "one"}, {"a", "y", ""}, {"b", "x", "two"}, {"b", "y", "three"}, {"c", "z", "four"}, {"c", "x", ""},
	} {
		if got := netrc(text, c.host, c.user); got != c.want {
			t.Errorf("%s@%s: %q, want %q", c.user, c.host, got, c.want)
		}
	}
}

func TestABadAddressIsAUsageErrorWithoutThePassword(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, address := range []string{"ftp://host/dir", "ftp://u:secret@host/dir", "ftp:///dir", "ftp://u:secret@ho st/"} {
		if _, err := Open(address); fault.KindOf(err) != fault.Usage || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAPasswordThatOthersMayReadIsRefused(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	must.Do(t, os.WriteFile(filepath.Join(home, ".netrc"), []byte("machine h login u password p"), 0o644))
	if _, err := Open("ftp://u@h/d"); fault.KindOf(err) != fault.NotPermitted {
		t.Error(err)
	}
	must.Do(t, os.Chmod(filepath.Join(home, ".netrc"), 0o600))
	s, err := Open("ftp://u@h/d")
	if err != nil || s.account.password != "p" || s.account.host != "h:21" || s.account.dir != "d" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestADirectoryAsPasswordFileIsAUsageError(t *testing.T) {
	t.Setenv("ADLOCK_FTP_PASSWORD_FILE", "/tmp")
	if _, err := Open("ftp://u@h/d"); fault.KindOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), "/tmp: is a directory") {
		t.Error(err)
	}
}

// A full server may say only "Failure writing to local file."
func TestAnFTPServerThatCannotStoreIsReportedAsAWriteError(t *testing.T) {
	s := &Store{account: account{address: "ftp://u@h/d"}}
	for _, code := range []int{426, 451, 452, 552} {
		err := s.wrap(&textproto.Error{Code: code, Msg: "Failure writing to local file.\r\n"})
		if want := s.String() + ": the server has no room, or cannot write: Failure writing to local file."; fault.KindOf(err) != fault.IO || err.Error() != want {
			t.Errorf("%d: %v, want %s", code, err, want)
		}
	}
}
