package ftp

import (
	"context"
	"fmt"
	"time"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/record"
)

const clockLasts = time.Minute

// now returns the server's time. Once a minute it stores this machine's clock file (with OnlyRead, it reads
// an earlier run's file), and asks for the file's time.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	if s.serverThen.IsZero() || process.Boottime()-s.clockRead > clockLasts {
		clock, err := clockName()
		if err != nil {
			return time.Time{}, err
		}
		ask := s.askClock
		if s.reads {
			ask = s.readClock
		}
		if err := ask(ctx, s.in(clock)); err != nil {
			return time.Time{}, err
		}
	}
	return s.serverThen.Add(process.Boottime() - s.clockRead), nil
}

// timed ignores the error of a full disk: the file is there, cut short, and its time counts.
func timed(err error) error {
	if fault.KindOf(err) == fault.IO {
		return nil
	}
	return err
}

// askClock reads this machine's clock before it stores the file. If it did so afterwards, the computed server
// time would lag, and a last lock that was just stamped would lie in the future and be invalid.
func (s *Store) askClock(ctx context.Context, file string) error {
	read := process.Boottime()
	temporary, text := s.in(atom.TemporaryName(record.NewToken())), clockText()
	err := s.put(ctx, temporary, text)
	if fault.KindOf(err) == fault.IO { // the disk is full: keep the old file, as a new one might find no space
		defer func() { _ = s.remove(ctx, temporary) }() // if this fails, the next owner removes it (sweep)
		file = temporary
	} else if err == nil || isAnswer(err) {
		_, err = s.install(ctx, temporary, file, text)
	}
	if err = timed(err); err != nil {
		return err
	}
	at, err := s.modified(ctx, file)
	if err != nil {
		return s.refused("cannot tell the time of "+file, err)
	}
	s.clockRead, s.serverThen = read, at
	return nil
}

// OnlyRead stops all writing to the store. FTP shows the server's clock only as the time of a new file. Without
// a new file, that clock is computed from this machine's last reading in this boot or, if there is none,
// assumed to agree with this machine's.
func (s *Store) OnlyRead() { s.reads = true }

func (s *Store) readClock(ctx context.Context, file string) error {
	s.clockRead, s.serverThen = process.Boottime(), time.Now()
	text, err := s.get(ctx, file)
	if err != nil {
		return ignoreMissing(err)
	}
	then, known := parseClock(string(text))
	at, err := s.modified(ctx, file)
	if err != nil || !known {
		return ignoreMissing(err)
	}
	s.clockRead = process.Boottime()
	s.serverThen = at.Add(s.clockRead - then)
	return nil
}

func clockText() []byte {
	return fmt.Appendf(nil, "boot=%s\nboottime=%d\n", process.Here().BootID(), process.Boottime())
}

// parseClock reads the boottime that clockText wrote. known is false for another boot, or another text.
func parseClock(text string) (at time.Duration, known bool) {
	var boot string
	n, _ := fmt.Sscanf(text, "boot=%s\nboottime=%d\n", &boot, &at)
	return at, n == 2 && boot != "" && boot == process.Here().BootID()
}

func (s *Store) enterable(ctx context.Context) error {
	err := s.do(ctx, func(c *client.ServerConn) error {
		home, err := c.CurrentDir()
		if err == nil {
			err = c.ChangeDir(s.account.dir)
		}
		if err != nil {
			return err
		}
		return c.ChangeDir(home)
	})
	return s.refused("the directory is not there, or the user may not enter it", err)
}
