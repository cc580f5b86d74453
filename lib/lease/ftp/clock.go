package ftp

import (
	"context"
	"fmt"
	"time"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/process"
	"adlock/lib/record"
)

// Elapsed is by the server's clock alone, which stamped the last lock and was read for the
// snapshot; in whole seconds.
func (s *Store) Elapsed(_ context.Context, seen *lease.Snapshot) (time.Duration, error) {
	return seen.Now.Sub(seen.Last.Completed), nil
}

// clockLasts is how long a reading of the server's clock is good.
const clockLasts = time.Minute

// now is the server's clock: a file is stored and asked for its time. Each machine has one such
// file, which stays.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	if time.Since(s.clockRead) > clockLasts {
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
	return s.serverThen.Add(time.Since(s.clockRead)), nil
}

// timed ignores a full disk: the file is there, cut short, and its time counts.
func timed(err error) error {
	if fault.KindOf(err) == fault.IO {
		return nil
	}
	return err
}

// askClock notes the time before it stores the file: if this machine's idea of the server's now
// were late, a lock that was just stamped would lie in the future, and be invalid.
func (s *Store) askClock(ctx context.Context, file string) error {
	read := time.Now()
	temporary, text := s.in(atom.TemporaryName(record.NewToken())), clockText()
	err := s.put(ctx, temporary, text)
	if fault.KindOf(err) == fault.IO { // keep the space that the old file takes up: otherwise the disk would not be full
		defer func() { _ = s.remove(ctx, temporary) }() // the next owner sweeps
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

// OnlyRead stops all writing to the store, as a dry run writes nothing. FTP tells only the times
// of files, so the server's clock is then computed from this machine's last reading, in this
// boot; if there was none, the two clocks are taken to agree.
func (s *Store) OnlyRead() { s.reads = true }

func (s *Store) readClock(ctx context.Context, file string) error {
	s.clockRead, s.serverThen = time.Now(), time.Now()
	text, err := s.get(ctx, file)
	if err != nil {
		return ignoreMissing(err)
	}
	then, known := parseClock(string(text))
	at, err := s.modified(ctx, file)
	if err != nil || !known {
		return ignoreMissing(err)
	}
	s.clockRead, s.serverThen = time.Now(), at.Add(process.Boottime()-then)
	return nil
}

// clockText is the content of the clock's file: when it is stored, by this machine's boottime.
func clockText() []byte {
	return fmt.Appendf(nil, "boot=%s\nboottime=%d\n", process.Here().BootID(), process.Boottime())
}

// parseClock reads what clockText wrote, if in this boot.
func parseClock(text string) (at time.Duration, known bool) {
	var boot string
	n, _ := fmt.Sscanf(text, "boot=%s\nboottime=%d\n", &boot, &at)
	return at, n == 2 && boot != "" && boot == process.Here().BootID()
}

// enterable is an error if the directory of the locks is missing, or may not be entered.
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
