package network

import (
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// certificate makes a certificate for the loopback that is its own authority. It returns the files of
// the certificate and of its key.
func certificate(t testing.TB) (cert, key string) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private))(t)
	secret := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	dir := t.TempDir()
	write := func(name, kind string, content []byte) string {
		must.Do(t, os.WriteFile(dir+"/"+name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
		return dir + "/" + name
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

// etcdWithTLS starts an etcd with that certificate.
func etcdWithTLS(t testing.TB, cert, key string, more ...string) *node {
	t.Helper()
	m := startEtcd(t, 1)[0]
	m.Kill()
	m.TLS = append([]string{"--cert-file", cert, "--key-file", key}, more...)
	m.Start(t)
	helper.Eventually(t, "etcd shakes hands", func() bool { // a server that only listens may still need seconds
		dialer := &net.Dialer{Timeout: time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", m.Client, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return m
}

func TestEtcdIsReachedWithTLSAndAClientCertificate(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	m := etcdWithTLS(t, cert, key, "--trusted-ca-file", cert, "--client-cert-auth")
	h := newHost(t, url(m)).with("ETCDCTL_CACERT=" + cert)
	h.run(t, "echo ran").Refused(t, 69, "refuses our certificate, or wants one: ")
	h.with("ETCDCTL_CERT="+cert, "ETCDCTL_KEY="+key).run(t, "echo ran", "--wait=60s").Ran(t)
}
