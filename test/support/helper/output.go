package helper

import (
	"io"
	"os"
	"syscall"
	"time"
)

// Output is a pipe from a command to a writer. A command with exec.Cmd.WaitDelay would lose what this
// process did not come to read within that time.
type Output struct {
	in, Out *os.File // Out is for the command
	to      io.Writer
	ended   chan struct{} // closed when in is read to its end or to its deadline
}

// NewOutput returns a pipe whose reader has begun.
func NewOutput(to io.Writer) (*Output, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &Output{in: in, Out: out, to: to, ended: make(chan struct{})}
	go func() {
		_, _ = io.Copy(to, in) // Finish reads on after its deadline
		close(o.ended)
	}()
	return o, nil
}

// Started closes this process's end for writing: the command has it.
func (o *Output) Started() { o.Out.Close() }

// Finish is called once the command has ended. When it returns, all that the command wrote is in the
// writer. It waits for others that have the pipe, and returns false if one still has it then.
func (o *Output) Finish(wait time.Duration) (alone bool) {
	defer o.in.Close()
	_ = o.in.SetReadDeadline(time.Now().Add(wait))
	<-o.ended
	_ = o.in.SetReadDeadline(time.Time{})
	raw, err := o.in.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Read(func(fd uintptr) bool {
		for left, text := 1<<16, make([]byte, 1<<16); left > 0; { // what a pipe holds: another process may write for ever
			n, err := syscall.Read(int(fd), text)
			if err == syscall.EINTR {
				continue
			}
			if alone = n == 0 && err == nil; n <= 0 {
				break
			}
			_, _ = o.to.Write(text[:n])
			left -= n
		}
		return true
	})
	return alone
}
