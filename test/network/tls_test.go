package network

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// certificate makes a certificate for the loopback that is its own authority, with changes; it
// returns the files of the certificate and of its key.
func certificate(t testing.TB, changes ...func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, change := range changes {
		change(&template)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, content []byte) string {
		if err := os.WriteFile(dir+"/"+name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

func TestEtcdIsReachedWithTLSAndAClientCertificate(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	m := startEtcd(t, 1)[0]
	m.kill()
	m.tls = []string{"--cert-file", cert, "--key-file", key, "--trusted-ca-file", cert, "--client-cert-auth"}
	m.start(t)
	h := newHost(t, url(m))
	h.env = append(h.env, "ETCDCTL_CACERT="+cert)
	h.run(t, "echo ran").Refused(t, 69, "etcd://")
	h.env = append(h.env, "ETCDCTL_CERT="+cert, "ETCDCTL_KEY="+key)
	h.run(t, "echo ran", "--wait=60s").Ran(t)
}
