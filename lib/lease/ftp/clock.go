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

// Elapsed is by the server's clock alone, which has stamped the last lock and has been
// asked for the snapshot; in whole seconds.
func (s *Store) Elapsed(_ context.Context, seen *lease.Snapshot) (time.Duration, error) {
	return seen.Now.Sub(seen.Last.Completed), nil
}

// clockLasts is for how long a look at the server's clock is good.
const clockLasts = time.Minute

// now is the server's clock: a file is stored and asked for its time. It is
// one for each machine, and stays.
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

// timed forgives a full disk: the file is there then, cut short, and its time counts.
func timed(err error) error {
	if fault.KindOf(err) == fault.IO {
		return nil
	}
	return err
}

// askClock notes the time before the file is stored: were our idea of the server's now
// late, a lock that was stamped just now would lie in the future, and not be believed.
func (s *Store) askClock(ctx context.Context, file string) error {
	read := time.Now()
	temporary, text := s.in(atom.TemporaryName(record.NewToken())), clockText()
	err := s.put(ctx, temporary, text)
	if fault.KindOf(err) == fault.IO { // what the file before takes up is not to be free: it would not be full
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

// OnlyRead has the store written to no more, as a dry run writes nothing. FTP tells the
// time of files alone: so what the server's clock shows is then reckoned from when this
// machine asked for it last, in this boot; where it never did, the two clocks are taken to
// agree.
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

// clockText is what the clock's file says: when it is stored, as this machine has it.
func clockText() []byte {
	return fmt.Appendf(nil, "boot=%s\nboottime=%d\n", process.Here().BootID(), process.Boottime())
}

// parseClock reads what clockText wrote, in this boot.
func parseClock(text string) (at time.Duration, known bool) {
	var boot string
	n, _ := fmt.Sscanf(text, "boot=%s\nboottime=%d\n", &boot, &at)
	return at, n == 2 && boot != "" && boot == process.Here().BootID()
}

// enterable is an error where the directory of the locks is not there, or not for us.
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
