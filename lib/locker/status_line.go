package locker

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// StatusLine shows a person at a terminal what a process waits for: one line on standard error, rewritten each
// second until Clear. The zero StatusLine is ready; nil shows nothing. Several goroutines may use it.
type StatusLine struct {
	mu   sync.Mutex
	text func() string
	up   bool
	done chan struct{}
}

const clearLine = "\r\x1b[K"

// Show shows what text returns, and calls text again each second, until Clear or another Show.
func (l *StatusLine) Show(text func() string) {
	if l == nil || !isShown() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	if !l.up {
		l.up, l.done = true, make(chan struct{})
		go l.keep(l.done)
	}
	l.write()
}

func (l *StatusLine) Clear() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		l.up = false
		close(l.done)
		tell(clearLine)
	}
}

// keep rewrites the line until it is cleared. At a signal that ends this process, keep clears the line first,
// because the shell's prompt comes next.
func (l *StatusLine) keep(done chan struct{}) {
	signals := sysfile.CatchEnds()
	defer signal.Stop(signals)
	for tick := time.Tick(time.Second); ; {
		select {
		case <-done:
			return
		case <-tick:
			l.mu.Lock()
			if l.up {
				l.write()
			}
			l.mu.Unlock()
		case sig := <-signals:
			l.Clear()
			signal.Stop(signals)
			_ = unix.Kill(unix.Getpid(), sig.(unix.Signal)) // for the signal's default action, or for another listener
			return
		}
	}
}

func (l *StatusLine) write() {
	columns, _ := sysfile.Columns(2)
	if columns <= 1 {
		columns = 80
	}
	row := fault.Plain(l.text())
	for i, r := range row {
		columns--
		if r >= firstWide {
			columns--
		}
		if columns < 1 {
			row = row[:i]
			break
		}
	}
	tell(clearLine + row)
}

// firstWide is the first character of two columns (Unicode Annex 11). Narrow ones above it count as wide, too.
const firstWide = 0x1100

// tell writes to the terminal if isShown. It ignores an error: if the terminal has gone, no person sees the line.
func tell(text string) {
	if isShown() {
		_, _ = sysfile.Write(2, []byte(text))
	}
}

// isShown reports whether a person can see the line: standard error is a terminal that can clear a
// line, and this process is in the terminal's foreground (the kernel may stop a background process that writes).
func isShown() bool {
	if !sysfile.IsTerminal(2) || os.Getenv("TERM") == "dumb" {
		return false
	}
	group, err := unix.IoctlGetInt(2, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
