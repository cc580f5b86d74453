package hook

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// logSocket is where syslogd, rsyslogd and journald take messages. Tests change it.
var logSocket = "/dev/log"

var errFull = errors.New("its queue is full, and messages are lost")

// LogSocket returns the path of the system log's socket, and an error if the socket cannot be written to now.
func LogSocket() (path string, err error) {
	fd, err := sysfile.Socket(unix.SOCK_DGRAM)
	if err != nil {
		return logSocket, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: logSocket}); err != nil {
		return logSocket, err
	}
	if sysfile.Poll(fd, unix.POLLOUT) == 0 { // the receiver's queue is full (of a datagram socket)
		return logSocket, errFull
	}
	return logSocket, nil
}

// longestMessage is the length of a message, in bytes, that every syslogd accepts (RFC 3164).
const longestMessage = 1024

// Say writes text to the system's log if Syslog is set: one datagram, which is dropped if the log's
// queue is full. log/syslog would wait for room, and try a stream after a failure.
func (h *Hook) Say(text string) {
	if h == nil || !h.Syslog {
		return
	}
	fd, err := sysfile.Socket(unix.SOCK_DGRAM)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_ = unix.Sendto(fd, message(text), unix.MSG_DONTWAIT, &unix.SockaddrUnix{Name: logSocket})
}

// message returns text as syslog(3) sends it, with the user first, as several users may have a job of the same name.
func message(text string) []byte {
	const userWarning = "<12>"
	text = userWarning + time.Now().Format(time.Stamp) + " adlock[" + strconv.Itoa(os.Getpid()) + "]: " + escaped(sysfile.UserName(os.Geteuid())+": "+text)
	return []byte(shortened(text, longestMessage))
}

// shortened cuts a text to most bytes by leaving out its middle, as the reason is at its end, after the operand.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const gap = "..."
	half := (most - len(gap)) / 2
	return strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")
}

func escaped(text string) string {
	quoted := strconv.Quote(shortened(text, longestText))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
