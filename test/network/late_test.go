//go:build soak

package network

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/limit"
)

// If an answer comes after its command was given up, it must not be taken for the answer to the
// next command: each later command would get the answer to the one before it.
func TestAnAnswerOverFTPThatComesTooLateIsDropped(t *testing.T) {
	f := startFTP(t, "")
	for what, answer := range map[string]string{"the port for data": "229 ", "the end of a list": "226 Directory"} {
		t.Run(what, func(t *testing.T) {
			r := newRelay(t, f.address)
			late := make(chan bool, 1)
			answers := func(line []byte) []byte {
				if bytes.HasPrefix(line, []byte(answer)) && len(late) > 0 {
					<-late
					time.Sleep(time.Second) // an eighth of the lease is less
				}
				return line
			}
			r.edit = func(net.Conn) [2]func([]byte) []byte { return [2]func([]byte) []byte{toClient: answers} }
			s := openFTP(t, r.address())
			ctx := limited(t)
			place, seen, err := s.Enter(ctx, atom.Name("p.h.o.x"+answer[:3]), aRecord(t, false), limit.ShortestLease, true)
			if err != nil || seen.Held {
				t.Fatal(seen, err)
			}
			late <- true
			if _, err := place.Look(ctx); fault.KindOf(err) != fault.Unavailable || len(late) > 0 {
				t.Fatalf("the answer was not late: %v", err)
			} else if !strings.HasSuffix(err.Error(), ": "+lease.NoAnswer) {
				t.Error(err)
			}
			for range 3 {
				if err := place.Renew(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A server that refuses a record may do so because a newcomer passed the lock meanwhile, and
// removed it. If it no longer answers, it has not refused the user.
func TestAnFTPServerThatFallsSilentIsNotReportedAsRefusing(t *testing.T) {
	f := startFTP(t, "")
	p := newTeller(t, f)
	p.answer = func(command string) string {
		if !strings.HasPrefix(command, "STOR locks/lock.") {
			return ""
		}
		p.silent = 0 // from the next command on
		return "553 Could not create file."
	}
	f.hostBy(t, p.address()).brief().run(t, "echo ran").Refused(t, 69, lease.NoAnswer)
}
