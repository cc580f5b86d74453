//go:build soak

package network

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/test/support/helper"
)

// atOnce is the time for a refusal without a wait, on a busy machine: less than the wait for an
// answer.
const atOnce = 4 * time.Second

// said asks for a job that must not run, and fails the test unless run ends with the status and the
// words, in one line.
func said(t *testing.T, h *host, status int, words string) {
	t.Helper()
	began := time.Now()
	r := h.run(t, "echo ran")
	spent := time.Since(began)
	line := "adlock: o x: not run: " + h.store + ": " + words + "\n"
	if rest, other := strings.CutPrefix(words, "adlock: "); other {
		line = "adlock: o x: not run: " + rest + "\n"
	}
	// A newer server sends another alert.
	r.Err = strings.Replace(r.Err, "certificate required", "bad certificate", 1)
	if r.Status != status || r.Out != "" || r.Err != line {
		t.Errorf("status %d, printed %q, and said\n%sinstead of %d and\n%s", r.Status, r.Out, r.Err, status, line)
	}
	if spent > atOnce && !strings.HasPrefix(words, "no answer") {
		t.Errorf("it took %v", spent)
	}
}

func TestEachErrorOfEtcdHasItsReason(t *testing.T) {
	good, key := certificate(t)
	other, _ := certificate(t)
	expired, expiredKey := certificate(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	})
	elsewhere, elsewhereKey := certificate(t, func(c *x509.Certificate) {
		c.IPAddresses, c.DNSNames = nil, []string{"etcd.example"}
	})
	secure := func(cert, key string, more ...string) *node {
		m := startEtcd(t, 1)[0]
		m.kill()
		m.tls = append([]string{"--cert-file", cert, "--key-file", key}, more...)
		m.start(t)
		helper.Eventually(t, "etcd shakes hands", func() bool { return shakesHands(m.client) })
		return m
	}
	trusting := func(m *node, ca string) *host { return newHost(t, url(m)).with("ETCDCTL_CACERT=" + ca) }
	plain, withTLS := startEtcd(t, 1)[0], secure(good, key)
	yesterday := time.Now().Add(-24 * time.Hour).UTC().Format("2006-01-02")
	for name, each := range map[string]struct {
		host  *host
		words string
	}{
		"another authority":       {trusting(withTLS, other), "the authority that signed its certificate is not known here"},
		"an expired certificate":  {trusting(secure(expired, expiredKey), expired), "its certificate expired on " + yesterday},
		"another host's":          {trusting(secure(elsewhere, elsewhereKey), elsewhere), "its certificate is for etcd.example and not for 127.0.0.1"},
		"TLS where there is none": {trusting(plain, good), "does not speak TLS"},
		"no TLS where there is":   {newHost(t, url(withTLS)), "wants TLS: ETCDCTL_CACERT says with which authority"},
		"no certificate of ours": {
			trusting(secure(good, key, "--trusted-ca-file", good, "--client-cert-auth"), good),
			"refuses our certificate, or wants one: bad certificate",
		},
		"a closed port":   {newHost(t, "etcd://"+freePort(t)+"/adlock"), "connection refused"},
		"an unknown name": {newHost(t, "etcd://nobody.invalid:2379/adlock"), "nobody.invalid: no such host"},
		"no file":         {trusting(plain, "/nowhere/ca.pem"), "adlock: /nowhere/ca.pem: no such file or directory, and ETCDCTL_CACERT names it"},
		"another server":  {newHost(t, "etcd://"+greeter(t, "SSH-2.0-nobody\r\n")+"/adlock"), "is no etcd, or none of version 3"},
		"two troubles": {
			newHost(t, "etcd://"+freePort(t)+",nobody.invalid:2379/adlock"), "",
		},
		"silence": {newHost(t, "etcd://"+greeter(t, "")+"/adlock"), "no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			if each.words == "" {
				members := strings.Split(strings.TrimSuffix(strings.TrimPrefix(each.host.store, "etcd://"), "/adlock"), ",")
				each.words = members[0] + ": connection refused; " + members[1] + ": nobody.invalid: no such host"
			}
			said(t, each.host, fault.StatusUnavailable, each.words)
		})
	}
}

// shakesHands reports whether a server with TLS answers: one that only listens may still need
// seconds.
func shakesHands(address string) bool {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// greeter listens, sends the words to each client, and nothing more.
func greeter(t *testing.T, words string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

func TestAScriptPrintsTheSameReasons(t *testing.T) {
	h := newHost(t, "etcd://"+freePort(t)+","+greeter(t, "SSH-2.0-nobody\r\n")+"/adlock")
	first, second, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(h.store, "etcd://"), "/adlock"), ",")
	r := helper.Command{
		Args: []string{"sh", "-c", `. "$library"; adlock_get o x 0; echo $?`},
		Env:  append(h.env, "ADLOCK_BIN="+h.bin, "library="+helper.Root()+"/sh/adlock.sh"),
	}.Run(t)
	reasons := []string{first + ": connection refused", second + ": is no etcd, or none of version 3"}
	slices.Sort(reasons)
	if want := "adlock: " + h.store + ": " + strings.Join(reasons, "; ") + "\n"; r.Out != "69\n" || r.Err != want {
		t.Errorf("status %q, and said\n%sinstead of\n%s", r.Out, r.Err, want)
	}
}
