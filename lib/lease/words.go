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

const NoAnswer = "no answer in time" // the reason if a server sends nothing

// Reason is an error that says in plain words why a server cannot be reached, whatever the protocol.
type Reason struct {
	Text string
	Lasting
}

type Lasting int // how long a Reason holds

const (
	Passing  Lasting = iota // the next try may succeed
	Certain                 // the next try will fail: no server is there
	Hopeless                // later tries will fail too: the address, or what this machine has for it, is wrong
)

func (r Reason) Error() string { return r.Text }

func Unreachable(address string, why Reason) error {
	return &fault.Error{Kind: fault.Unavailable, Object: address, Err: why}
}

// ReasonOf finds the reason in an error of the network or of TLS.
func ReasonOf(err error) Reason {
	text, lasting := words(err)
	return Reason{text, lasting}
}

func words(err error) (string, Lasting) {
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
		return "the authority that signed its certificate is not known here", Hopeless
	case errors.As(err, &invalid):
		return invalidity(invalid), Hopeless
	case errors.As(err, &host):
		return "its certificate is for " + subjects(host.Certificate) + " and not for " + host.Host, Hopeless
	case errors.As(err, &record):
		return "does not speak TLS", Hopeless
	case errors.As(err, &said) && said.Op == "remote error":
		return alert(said.Err.Error()), Hopeless
	case errors.As(err, &name) && name.IsNotFound:
		return name.Name + ": no such host", Hopeless
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", Certain
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "closes the connection", Passing
	case isTimeout(err), errors.Is(err, net.ErrClosed): // closed on this side after a timeout
		return NoAnswer, Passing
	}
	return err.Error(), Passing
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

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

// alert returns why a server has ended the handshake (RFC 8446, 6.2); crypto/tls gives only the alert's text.
func alert(text string) string {
	text = strings.TrimPrefix(text, "tls: ")
	if strings.Contains(text, "certificate") || text == "unknown certificate authority" {
		return "refuses our certificate, or wants one: " + text
	}
	return "refuses TLS: " + text
}

// Unreadable returns the error for a file that the environment variable names and that cannot be read.
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

// NoCertificate is the error if a file of authorities holds no certificate: no server would be trusted.
func NoCertificate(file string) error { return fault.New(fault.Usage, file, "holds no certificate") }
