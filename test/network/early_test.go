package network

import (
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// The watchdog of a lease must begin before the client libraries are initialised: otherwise it, and
// the process that starts it, would take three times as long to start.
func TestTheWatchdogBeginsBeforeTheClientLibrariesDo(t *testing.T) {
	t.Parallel()
	smith := filepath.Join(filepath.Dir(binary(t)), "adlock-locksmith")
	r := helper.Command{Args: []string{smith, "--version"}, Env: []string{"GODEBUG=inittrace=1"}}.Run(t)
	early := strings.Index(r.Err, "\ninit adlock/cmd/adlock-locksmith/early ")
	if early < 0 {
		t.Fatalf("%+v", r)
	}
	for _, library := range []string{"google.golang.org/grpc", "google.golang.org/protobuf/reflect/protodesc", "go.etcd.io/etcd/api/v3/etcdserverpb"} {
		if at := strings.Index(r.Err, "\ninit "+library+" "); at < early {
			t.Errorf("%s is initialised at %d, before %d", library, at, early)
		}
	}
}
