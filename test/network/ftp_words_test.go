//go:build soak

package network

import (
	"crypto/x509"
	"testing"
	"time"

	"adlock/lib/fault"
)

func TestEachErrorOfFTPHasItsReason(t *testing.T) {
	good, key := certificate(t)
	other, _ := certificate(t)
	expired, expiredKey := certificate(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	})
	elsewhere, elsewhereKey := certificate(t, func(c *x509.Certificate) {
		c.IPAddresses, c.DNSNames = nil, []string{"ftp.example"}
	})
	plain := startFTP(t, "")
	offers := func(cert, key string) *ftpd { return startFTP(t, "").withTLS(t, cert, key) }
	trusting := func(f *ftpd, ca string) *host { return f.host(t).brief().with("ADLOCK_FTP_CACERT=" + ca) }
	at := func(store string) *host {
		h := plain.host(t).brief()
		h.store = store
		return h.with("ADLOCK_STORE=" + store)
	}
	yesterday := time.Now().Add(-24 * time.Hour).UTC().Format("2006-01-02")
	for name, each := range map[string]struct {
		host  *host
		words string
	}{
		"another authority":       {trusting(offers(good, key), other), "the authority that signed its certificate is not known here"},
		"an expired certificate":  {trusting(offers(expired, expiredKey), expired), "its certificate expired on " + yesterday},
		"another host's":          {trusting(offers(elsewhere, elsewhereKey), elsewhere), "its certificate is for ftp.example and not for 127.0.0.1"},
		"TLS where there is none": {at("ftps://anonymous@" + plain.address + "/locks"), "does not offer TLS: Please login with USER and PASS."},
		"a closed port":           {at("ftp://anonymous@" + freePort(t) + "/locks"), "connection refused"},
		"an unknown name":         {at("ftp://anonymous@nobody.invalid/locks"), "nobody.invalid: no such host"},
		"another server":          {at("ftp://anonymous@" + greeter(t, "SSH-2.0-nobody\r\n") + "/locks"), "is no FTP server"},
		"silence":                 {at("ftp://anonymous@" + greeter(t, "") + "/locks"), "no answer in time"},
		"no file of authorities": {
			trusting(plain, "/nowhere/ca.pem"), "adlock: /nowhere/ca.pem: no such file or directory, and ADLOCK_FTP_CACERT names it",
		},
		"no file with the password": {
			plain.host(t).brief().with("ADLOCK_FTP_PASSWORD_FILE=/nowhere/password"),
			"adlock: /nowhere/password: no such file or directory, and ADLOCK_FTP_PASSWORD_FILE names it",
		},
	} {
		t.Run(name, func(t *testing.T) { said(t, each.host, fault.StatusUnavailable, each.words) })
	}
}
