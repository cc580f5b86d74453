package lease

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"adlock/lib/fault"
)

func TestEachNetworkErrorIsExplainedAndClassified(t *testing.T) {
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	past := &x509.Certificate{NotBefore: day.AddDate(-1, 0, 0), NotAfter: day}
	ahead := &x509.Certificate{NotBefore: time.Now().AddDate(1, 0, 0), NotAfter: time.Now().AddDate(2, 0, 0)}
	others := &x509.Certificate{DNSNames: []string{"a.example", "b.example"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}}
	for _, each := range []struct {
		err     error
		reason  string
		lasting Lasting
	}{
		{x509.UnknownAuthorityError{}, "the authority that signed its certificate is not known here", Hopeless},
		{x509.CertificateInvalidError{Cert: past, Reason: x509.Expired}, "its certificate expired on 2026-01-02", Hopeless},
		{x509.CertificateInvalidError{Cert: ahead, Reason: x509.Expired}, "its certificate is not valid before " + ahead.NotBefore.Format("2006-01-02") + ", or the clock here is wrong", Hopeless},
		{x509.CertificateInvalidError{Cert: past, Reason: x509.NotAuthorizedToSign}, "its certificate is not valid: certificate is not authorized to sign other certificates", Hopeless},
		{x509.HostnameError{Certificate: others, Host: "c.example"}, "its certificate is for a.example, b.example, 10.0.0.1 and not for c.example", Hopeless},
		{x509.HostnameError{Certificate: past, Host: "c.example"}, "its certificate is for no host and not for c.example", Hopeless},
		{tls.RecordHeaderError{Msg: "no TLS"}, "does not speak TLS", Hopeless},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "refuses our certificate, or wants one: certificate required", Hopeless},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: unknown certificate authority")}, "refuses our certificate, or wants one: unknown certificate authority", Hopeless},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: protocol version not supported")}, "refuses TLS: protocol version not supported", Hopeless},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nobody", IsNotFound: true}}, "nobody: no such host", Hopeless},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "connection refused", Certain},
		{io.EOF, "closes the connection", Passing},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "closes the connection", Passing},
		{context.DeadlineExceeded, NoAnswer, Passing},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, NoAnswer, Passing},
		{&net.OpError{Op: "read", Err: net.ErrClosed}, NoAnswer, Passing},
		{errors.New("something else"), "something else", Passing},
	} {
		got := ReasonOf(fmt.Errorf("on the way: %w", each.err))
		if each.reason == "something else" {
			each.reason = "on the way: something else"
		}
		if got != (Reason{each.reason, each.lasting}) {
			t.Errorf("%v: %+v; want %q, %v", each.err, got, each.reason, each.lasting)
		}
	}
}

func TestAnErrorAboutAFileNamesItsVariable(t *testing.T) {
	for why, kind := range map[syscall.Errno]fault.Kind{syscall.ENOENT: fault.Unavailable, syscall.EACCES: fault.NotPermitted} {
		got := Unreadable("/x", "NAME", &fs.PathError{Op: "open", Path: "/x", Err: why})
		if want := "/x: " + why.Error() + ", and NAME names it"; fault.KindOf(got) != kind || got.Error() != want {
			t.Errorf("%v, kind %v; want %q, kind %v", got, fault.KindOf(got), want, kind)
		}
	}
}
