package ftp

import (
	"errors"
	"net/textproto"
	"slices"
	"strings"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/fault"
	"adlock/lib/lease"
)

func (a *account) unreachable(err error) error {
	why := lease.ReasonOf(err)
	var protocol textproto.ProtocolError
	if errors.As(err, &protocol) {
		why = lease.Reason{Text: "is no FTP server", Lasting: lease.Hopeless}
	}
	return lease.Unreachable(a.address, why)
}

// checkGreeting returns an error if a server's greeting does not begin with a number. textproto
// takes "SSH-" for the first line of several, and would wait for the rest.
func checkGreeting(talk *textproto.Conn) error {
	first, err := talk.R.Peek(3)
	if err == nil && strings.Trim(string(first), "0123456789") != "" {
		err = textproto.ProtocolError("no number first")
	}
	return err
}

func (a *account) noTLS(err error) error {
	return a.refusal(fault.Unavailable, "does not offer TLS", err, client.StatusNotLoggedIn, client.StatusBadCommand,
		client.StatusNotImplemented, client.StatusNotImplementedParameter, client.StatusCommandNotImplemented)
}

func (a *account) loginRefused(err error) error {
	why := "wrong user or password"
	if a.password == "" {
		why = "no password for " + a.user + " is in ~/.netrc, nor does ADLOCK_FTP_PASSWORD_FILE name a file with it"
	}
	return a.refusal(fault.NotPermitted, why, err, client.StatusNotLoggedIn, client.StatusLoginNeedAccount)
}

// refusal puts why before the server's own words if the answer has one of the codes.
func (a *account) refusal(kind fault.Kind, why string, err error, codes ...int) error {
	var answer *textproto.Error
	if errors.As(err, &answer) && slices.Contains(codes, answer.Code) {
		return &fault.Error{Kind: kind, Object: a.address, Err: &explained{why, answer}}
	}
	return err
}

type explained struct {
	why    string
	answer *textproto.Error
}

func (e *explained) Error() string { return e.why + ": " + strings.TrimSpace(e.answer.Msg) }
func (e *explained) Unwrap() error { return e.answer }
