package etcd

import (
	"crypto/x509"
	"errors"
	"os"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"adlock/lib/fault"
	"adlock/lib/lease"
)

var refusals = []struct {
	err    error
	kind   fault.Kind
	reason string
}{
	{rpctypes.ErrNoSpace, fault.IO, "no space: the quota of the cluster is used up (etcdctl alarm list)"},
	{rpctypes.ErrPermissionDenied, fault.NotPermitted, "permission denied: the user may not read and write below this prefix"},
	{rpctypes.ErrAuthFailed, fault.NotPermitted, "wrong user or password"},
	{rpctypes.ErrUserEmpty, fault.NotPermitted, "wants a user and a password: ETCDCTL_USER, ADLOCK_ETCD_PASSWORD_FILE"},
}

func (r *reach) trouble(address string, err error) error {
	for _, refusal := range refusals {
		if errors.Is(err, refusal.err) {
			return fault.New(refusal.kind, address, refusal.reason)
		}
	}
	why, late := r.why(), isLate(err)
	switch {
	case why.Lasting != lease.Passing:
	case !late:
		why.Text = strings.TrimPrefix(said(err), "etcdserver: ")
	case why.Text != "" && why.Text != lease.NoAnswer:
		why.Text = lease.NoAnswer + ": " + why.Text
	default:
		why.Text = lease.NoAnswer
	}
	return lease.Unreachable(address, why)
}

func readable(variables ...string) error {
	for _, variable := range variables {
		file := os.Getenv(variable)
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return lease.Unreadable(file, variable, err)
		}
		if variable == "ETCDCTL_CACERT" && !x509.NewCertPool().AppendCertsFromPEM(text) {
			return lease.NoCertificate(file)
		}
	}
	return nil
}
