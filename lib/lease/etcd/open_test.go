package etcd

import (
	"testing"

	"adlock/lib/fault"
)

func TestAMemberThatIsNotHostAndPortIsAUsageError(t *testing.T) {
	for _, members := range []string{"", "a", "127.0.0.1", "a:", ":2379", "a:2379,b", "a:23x9", "a:65536", "[::1]", "::1", "bob@a:2379"} {
		if s, err := Open(Scheme + members + "/prod"); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: error %v", members, err)
			if err == nil {
				s.Close()
			}
		}
	}
}

func TestHostsAndPortsAreMembers(t *testing.T) {
	for _, members := range []string{"a:2379", "127.0.0.1:1,b:2379", "[::1]:2379"} {
		s, err := Open(Scheme + members + "/prod")
		if err != nil {
			t.Errorf("%s: %v", members, err)
			continue
		}
		s.Close()
	}
}
