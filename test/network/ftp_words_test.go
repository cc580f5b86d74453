//go:build soak

package network

import (
	"testing"

	"adlock/lib/fault"
	"adlock/lib/lease"
)

func TestEachErrorOfFTPHasItsReason(t *testing.T) {
	good, key := certificate(t)
	other, _ := certificate(t)
	plain := startFTP(t, "")
	h := plain.host(t)
	at := func(store string) *host { return newHost(t, store).with("ADLOCK_FTP_PASSWORD_FILE=" + plain.password) }
	for name, each := range map[string]struct {
		host  *host
		words string
	}{
		"another authority": {
			startFTP(t, "").withTLS(t, good, key).host(t).with("ADLOCK_FTP_CACERT=" + other),
			"the authority that signed its certificate is not known here",
		},
		"TLS where there is none": {at("ftps://anonymous@" + plain.address + "/locks"), "does not offer TLS: Please login with USER and PASS."},
		"a closed port":           {at("ftp://anonymous@" + freePort(t) + "/locks"), "connection refused"},
		"an unknown name":         {at("ftp://anonymous@nobody.invalid/locks"), "nobody.invalid: no such host"},
		"another server":          {at("ftp://anonymous@" + greeter(t, "SSH-2.0-nobody\r\n") + "/locks"), "is no FTP server"},
		"silence":                 {at("ftp://anonymous@" + greeter(t, "") + "/locks"), lease.NoAnswer},
		"no file of authorities":  {h.with("ADLOCK_FTP_CACERT=/nowhere/ca.pem"), "adlock: /nowhere/ca.pem: no such file or directory, and ADLOCK_FTP_CACERT names it"},
		"no file with the password": {
			h.with("ADLOCK_FTP_PASSWORD_FILE=/nowhere/password"),
			"adlock: /nowhere/password: no such file or directory, and ADLOCK_FTP_PASSWORD_FILE names it",
		},
	} {
		t.Run(name, func(t *testing.T) { said(t, each.host, fault.StatusUnavailable, each.words) })
	}
}
