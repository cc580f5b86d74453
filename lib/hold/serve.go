package hold

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/runlog"
)

type ending struct {
	status     runlog.Opt[int] // as the program has reported it
	unreported bool            // the input or the program ended without a line `release`
	lost       string          // why the atom is no longer held; "": it is held
}

// serve reads what the program writes. After the program's death, serve reads for a second at most: the program's last
// lines are in the pipe by then, and a child of the program may keep the pipe open.
func (h *holding) serve(gone <-chan struct{}) ending {
	lines := readLines(os.Stdin)
	for over := (<-chan time.Time)(nil); ; {
		select {
		case line, more := <-lines:
			if e, done := h.handle(line, more); done {
				return e
			}
		case why := <-h.lost:
			if !ends(h.Request.Owner) {
				return ending{lost: why}
			}
			gone, over = nil, time.After(time.Second)
		case <-gone:
			gone, over = nil, time.After(time.Second)
		case <-over:
			return ending{unreported: true}
		}
	}
}

func (h *holding) handle(line string, more bool) (e ending, done bool) {
	if !more {
		return ending{unreported: true}, true
	}
	status, understood := parseRelease(line)
	if !understood {
		_ = say(trouble, "not understood: "+strconv.QuoteToASCII(line)+": want release [STATUS]") // if the program is gone, the end of the input shows it
		return ending{}, false
	}
	return ending{status: status}, true
}

// ends reports whether a process is exiting or dead. An exiting process closes its files before it is dead.
func ends(id process.Identity) bool {
	e, err := process.Find(id.PID)
	return err == nil && e.Exiting || id.Life() == process.Dead
}

func parseRelease(line string) (status runlog.Opt[int], understood bool) {
	words := strings.Fields(line)
	if len(words) == 0 || len(words) > 2 || words[0] != "release" {
		return status, false
	}
	if len(words) == 2 {
		n, err := strconv.Atoi(words[1])
		return runlog.Some(n), err == nil && n >= 0 && n <= 255
	}
	return status, true
}

const longestLine = 256

// readLines sends each line, cut at longestLine bytes, even a last one without a line feed, then closes the channel.
func readLines(from io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewReaderSize(from, longestLine)
		for {
			text, err := in.ReadSlice('\n')
			line := string(text)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = in.ReadSlice('\n')
			}
			if line != "" {
				lines <- strings.TrimRight(line, "\r\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// pollInterval is the pause between checks for ends that the kernel does not report.
const pollInterval = 200 * time.Millisecond

// AwaitDeath returns once the owner is certainly dead. It does not return while that cannot be checked.
func AwaitDeath(owner process.Identity) {
	held, _ := process.Hold(owner.Key(), owner.Inode) // without it AwaitDeath polls
	defer held.Close()
	for owner.Life() != process.Dead {
		if held.Exited() || !held.Await(time.Second) {
			time.Sleep(pollInterval)
		}
	}
}

// AwaitRest returns when nothing of a dead owner's job remains. Until then the job holds the atom.
func AwaitRest(job process.Job) {
	for began := process.Boottime(); job.Remains(); { // a look reads the whole process table
		time.Sleep(min(max(pollInterval, (process.Boottime()-began)/50), 5*time.Second))
	}
}

func (h *holding) ownersEnd() <-chan struct{} {
	gone := make(chan struct{})
	go func() { AwaitDeath(h.Request.Owner); close(gone) }()
	return gone
}

// awaitRest waits until the owner is dead and nothing of its job remains. If this process could not leave the owner's
// session (stepAside), it would wait for itself: then awaitRest returns false, and a newcomer reclaims the lock.
func (h *holding) awaitRest() bool {
	AwaitDeath(h.Request.Owner)
	if session, _ := unix.Getsid(0); session == h.Request.Owner.PID {
		return false
	}
	AwaitRest(process.Job{Owner: h.Request.Owner, Token: h.token, Taken: h.since})
	return true
}
