package ftp

import (
	"errors"
	"net/textproto"
	"strings"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/fault"
	"adlock/lib/lease"
)

// unreachable is what keeps us from talking to the server, in plain words.
func (a *account) unreachable(err error) error {
	reason, _ := lease.Words(err)
	var protocol textproto.ProtocolError
	if errors.As(err, &protocol) {
		reason = "is no FTP server"
	}
	return fault.New(fault.Unavailable, a.address, reason)
}

// speaksFTP is an error where what a server says first does not begin with a number. The
// reader would wait for more of what begins with "SSH-": it takes that for a first line.
func speaksFTP(talk *textproto.Conn) error {
	first, err := talk.R.Peek(3)
	if err == nil && strings.Trim(string(first), "0123456789") != "" {
		err = textproto.ProtocolError("no number first")
	}
	return err
}

// noTLS is what a server has answered that was asked for TLS, where we do not go on
// without.
func (a *account) noTLS(err error) error {
	return a.refusal(fault.Unavailable, "does not offer TLS", err, client.StatusNotLoggedIn, client.StatusBadCommand,
		client.StatusNotImplemented, client.StatusNotImplementedParameter, client.StatusCommandNotImplemented)
}

// loginRefused is what a server has answered to a user and a password.
func (a *account) loginRefused(err error) error {
	why := "wrong user or password"
	if a.password == "" {
		why = "no password for " + a.user + " is in ~/.netrc, nor does ADLOCK_FTP_PASSWORD_FILE name a file with it"
	}
	return a.refusal(fault.NotPermitted, why, err, client.StatusNotLoggedIn, client.StatusLoginNeedAccount)
}

// refusal puts our words before the server's where its answer is one of the codes.
func (a *account) refusal(kind fault.Kind, why string, err error, codes ...int) error {
	var answer *textproto.Error
	if errors.As(err, &answer) {
		for _, code := range codes {
			if answer.Code == code {
				return &fault.Error{Kind: kind, Object: a.address, Err: &explained{why, answer}}
			}
		}
	}
	return err
}

// explained is an answer of the server's, behind words of ours.
type explained struct {
	why    string
	answer *textproto.Error
}

func (e *explained) Error() string { return e.why + ": " + strings.TrimSpace(e.answer.Msg) }
func (e *explained) Unwrap() error { return e.answer }
