package lease

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"adlock/lib/fault"
)

// NoAnswer is the reason if a server sends nothing.
const NoAnswer = "no answer in time"

// refused is the reason if a server does not run. If it is started, it can be reached.
const refused = "connection refused"

// Unreachable is the error of a store that cannot be reached. certain is that of Words. The error is
// an ErrHopeless if the store's address, or what this machine has for it, is wrong.
func Unreachable(address, reason string, certain bool) error {
	err := errors.New(reason)
	if certain && !strings.Contains(reason, refused) {
		err = hopeless(reason)
	}
	return &fault.Error{Kind: fault.Unavailable, Object: address, Err: err}
}

// ErrHopeless says that it is of no use to wait for the store.
var ErrHopeless = errors.New("it is of no use to wait")

type hopeless string

func (h hopeless) Error() string        { return string(h) }
func (h hopeless) Is(target error) bool { return target == ErrHopeless }

// Words says in plain words why a server cannot be reached, whatever the protocol. certain: another
// try would end in the same way, so it is not worth waiting.
func Words(err error) (reason string, certain bool) {
	var (
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
		record    tls.RecordHeaderError
		name      *net.DNSError
		said      *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return "the authority that signed its certificate is not known here", true
	case errors.As(err, &invalid):
		return invalidity(invalid), true
	case errors.As(err, &host):
		return "its certificate is for " + subjects(host.Certificate) + " and not for " + host.Host, true
	case errors.As(err, &record):
		return "does not speak TLS", true
	case errors.As(err, &said) && said.Op == "remote error":
		return alert(said.Err.Error()), true
	case errors.As(err, &name) && name.IsNotFound:
		return name.Name + ": no such host", true
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused, true
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "closes the connection", false
	case isTimeout(err), errors.Is(err, net.ErrClosed): // closed on this side after a timeout
		return NoAnswer, false
	}
	return err.Error(), false
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// invalidity says what is wrong with a certificate itself, apart from its authority and host.
func invalidity(err x509.CertificateInvalidError) string {
	const day = "2006-01-02"
	switch {
	case err.Reason != x509.Expired:
		return "its certificate is not valid: " + strings.TrimPrefix(err.Error(), "x509: ")
	case time.Now().Before(err.Cert.NotBefore):
		return "its certificate is not valid before " + err.Cert.NotBefore.Format(day) + ", or the clock here is wrong"
	}
	return "its certificate expired on " + err.Cert.NotAfter.Format(day)
}

// subjects are the hosts that a certificate is for.
func subjects(c *x509.Certificate) string {
	names := c.DNSNames
	for _, address := range c.IPAddresses {
		names = append(names, address.String())
	}
	if len(names) == 0 {
		return "no host"
	}
	return strings.Join(names, ", ")
}

// alert is why a server has ended the handshake (RFC 8446, 6.2); crypto/tls gives only its text.
func alert(text string) string {
	text = strings.TrimPrefix(text, "tls: ")
	if strings.Contains(text, "certificate") || text == "unknown certificate authority" {
		return "refuses our certificate, or wants one: " + text
	}
	return "refuses TLS: " + text
}

// Unreadable is the error if a file cannot be read that a variable names.
func Unreadable(file, variable string, err error) error {
	kind := fault.Unavailable
	if errors.Is(err, fs.ErrPermission) {
		kind = fault.NotPermitted
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fault.New(kind, file, err.Error()+", and "+variable+" names it")
}

// NoCertificate is the error if a file of authorities holds no certificate: no server would be
// trusted.
func NoCertificate(file string) error { return fault.New(fault.Usage, file, "holds no certificate") }
