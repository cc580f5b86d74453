//go:build soak

package network

import (
	"net"
	"strings"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/test/support/must"
)

// said starts a run that must fail. It fails the test unless the run ends with the status, and prints the
// words in one line: at once, unless the words are those of a wait.
func said(t *testing.T, h *host, status int, words string) {
	t.Helper()
	began := time.Now()
	r := h.run(t, "echo ran")
	spent := time.Since(began)
	line := "adlock: o x: not run: " + h.store + ": " + words + "\n"
	if rest, other := strings.CutPrefix(words, "adlock: "); other {
		line = "adlock: o x: not run: " + rest + "\n"
	}
	if r.Status != status || r.Out != "" || r.Err != line {
		t.Errorf("status %d, printed %q, and said\n%sinstead of %d and\n%s", r.Status, r.Out, r.Err, status, line)
	}
	if spent > 4*time.Second && !strings.HasPrefix(words, lease.NoAnswer) { // less than the wait for an answer
		t.Errorf("it took %v", spent)
	}
}

// The messages about invalid certificates are tested in lib/lease.
func TestErrorsOfEtcdNameTheReason(t *testing.T) {
	good, key := certificate(t)
	other, _ := certificate(t)
	plain, withTLS := startEtcd(t, 1)[0], etcdWithTLS(t, good, key)
	trusting := func(m *node, ca string) *host { return newHost(t, url(m)).with("ETCDCTL_CACERT=" + ca) }
	closed := freePort(t)
	for name, each := range map[string]struct {
		host  *host
		words string
	}{
		"another authority":       {trusting(withTLS, other), "the authority that signed its certificate is not known here"},
		"TLS where there is none": {trusting(plain, good), lease.NoAnswer + ": closes the connection"},
		"no file":                 {trusting(plain, "/nowhere/ca.pem"), "adlock: /nowhere/ca.pem: no such file or directory, and ETCDCTL_CACERT names it"},
		"two troubles":            {newHost(t, "etcd://"+closed+",nobody.invalid:2379/adlock"), closed + ": connection refused; nobody.invalid:2379: nobody.invalid: no such host"},
	} {
		t.Run(name, func(t *testing.T) { said(t, each.host, fault.StatusUnavailable, each.words) })
	}
	script := newHost(t, "etcd://"+closed+"/adlock").script("adlock_get o x 0; echo $?").Run(t)
	if script.Out != "69\n" || !strings.HasSuffix(script.Err, "/adlock: connection refused\n") {
		t.Errorf("a script: status %q, and said %q", script.Out, script.Err)
	}
}

// greeter listens, sends the words to each client, and nothing more.
func greeter(t *testing.T, words string) (address string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			_, _ = conn.Write([]byte(words))
		}
	}()
	return l.Addr().String()
}

func TestARefusalOfEtcdIsReportedAsNotPermitted(t *testing.T) {
	m := startEtcd(t, 1)[0]
	for _, command := range []string{
		"user add root:secret", "user grant-role root root", "role add reader", "role grant-permission reader read --prefix=true /",
		"user add alice:wonder", "user grant-role alice reader", "auth enable",
	} {
		ctl(t, []*node{m}, strings.Fields(command)...)
	}
	h := newHost(t, url(m))
	for _, each := range []struct{ user, words string }{
		{"", "wants a user and a password: ETCDCTL_USER, ADLOCK_ETCD_PASSWORD_FILE"},
		{"root:guess", "wrong user or password"},
		{"nobody:secret", "wrong user or password"},
		{"alice:wonder", "permission denied: the user may not read and write below this prefix"},
	} {
		said(t, h.with("ETCDCTL_USER="+each.user), fault.StatusNotPermitted, each.words)
	}
	h.with("ETCDCTL_USER=root:secret").run(t, "echo ran").Ran(t)
}

func TestErrorsOfFTPNameTheReason(t *testing.T) {
	good, key := certificate(t)
	other, _ := certificate(t)
	plain := startFTP(t, "")
	h := plain.host(t)
	at := func(store string) *host { return newHost(t, store).with("ADLOCK_FTP_PASSWORD_FILE=" + plain.Password) }
	for name, each := range map[string]struct {
		host  *host
		words string
	}{
		"another authority": {
			startFTP(t, "").withTLS(t, good, key).host(t).with("ADLOCK_FTP_CACERT=" + other),
			"the authority that signed its certificate is not known here",
		},
		"TLS where there is none": {at("ftps://anonymous@" + plain.Address + "/locks"), "does not offer TLS: Please login with USER and PASS."},
		"another server":          {at("ftp://anonymous@" + greeter(t, "SSH-2.0-nobody\r\n") + "/locks"), "is no FTP server"},
		"silence":                 {at("ftp://anonymous@" + greeter(t, "") + "/locks"), lease.NoAnswer},
		"no file of authorities":  {h.with("ADLOCK_FTP_CACERT=/nowhere/ca.pem"), "adlock: /nowhere/ca.pem: no such file or directory, and ADLOCK_FTP_CACERT names it"},
		"no file with a password": {h.with("ADLOCK_FTP_PASSWORD_FILE=/nowhere"), "adlock: /nowhere: no such file or directory, and ADLOCK_FTP_PASSWORD_FILE names it"},
	} {
		t.Run(name, func(t *testing.T) { said(t, each.host, fault.StatusUnavailable, each.words) })
	}
}
