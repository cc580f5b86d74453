package cli

import (
	"strings"
	"testing"
)

func TestWithAStoreReportsReadTheLocalRunlog(t *testing.T) {
	s := newStage(t)
	s.want(0, jobNamed("here", "true")...)
	for _, verb := range []string{"log", "report", "timeline", "metrics"} {
		r := s.adlock("ADLOCK_STORE=etcd://127.0.0.1:1/p", verb)
		if r.Status != 0 || !strings.Contains(r.Out, "here") || strings.Count(r.Err, "adlock: ") > 1 {
			t.Errorf("%s: %+v", verb, r)
		}
	}
}
