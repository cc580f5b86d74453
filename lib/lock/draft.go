package lock

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/exit"
)

// Draft is a file that is not in place yet: it appears under its name whole or
// not at all. Where the file system can, it has no name until then (O_TMPFILE),
// so that a crash leaves nothing behind; elsewhere (FUSE, BSD) it is a file
// temp.*, which Sweep removes.
//
// A draft is guarded from birth: who meets it in place finds its guard taken
// until the draft is closed, which is after its maker's last look.
type Draft struct {
	file
	temporary string // its name where it has one of its own, else ""
}

// Draft makes a file with the content, mode 0600 whatever the umask, guarded.
func (d *Dir) Draft(content []byte) (*Draft, error) {
	draft, err := d.nameless()
	if err == nil && draft == nil {
		draft, err = d.temporary()
	}
	if err != nil {
		return nil, err
	}
	if err := draft.fill(content); err != nil {
		draft.Discard()
		return nil, err
	}
	return draft, nil
}

func (dr *Draft) fill(content []byte) error {
	if err := retry(func() error { return unix.Fchmod(dr.fd, 0o600) }); err != nil {
		return dr.wrap(err)
	}
	if err := dr.write(content); err != nil {
		return err
	}
	if err := dr.stat(); err != nil {
		return err
	}
	_, err := dr.flock(0)
	return err
}

func (d *Dir) temporary() (*Draft, error) {
	name := draftPrefix + Token()
	fd, err := openat(d.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, cannotCreate(d.Path(name), err)
	}
	return &Draft{file: file{dir: d, name: name, fd: fd}, temporary: name}, nil
}

// Link puts the draft in place under a name that must be free: fs.ErrExist
// where it is not.
func (dr *Draft) Link(name string) error {
	var err error
	if dr.temporary == "" {
		err = dr.linkNameless(name)
	} else {
		err = retry(func() error { return unix.Linkat(dr.dir.fd, dr.temporary, dr.dir.fd, name, 0) })
		if errors.Is(err, unix.EEXIST) && dr.namedNow(name) {
			err = nil // the answer was lost and the call repeated, as over NFS
		}
		if err == nil {
			dr.dropTemporary()
		}
	}
	if err != nil {
		return cannotCreate(dr.dir.Path(name), err)
	}
	dr.name = name
	return nil
}

// Replace puts the draft in place over whatever has the name: the name is at no
// moment without a file.
func (dr *Draft) Replace(name string) error {
	if dr.temporary == "" {
		temporary := draftPrefix + Token()
		if err := dr.linkNameless(temporary); err != nil {
			return cannotCreate(dr.dir.Path(temporary), err)
		}
		dr.temporary = temporary
	}
	if err := retry(func() error { return unix.Renameat(dr.dir.fd, dr.temporary, dr.dir.fd, name) }); err != nil {
		return exit.Wrap(dr.dir.Path(name), err)
	}
	dr.temporary, dr.name = "", name
	return nil
}

// Touch makes the draft's mtime the present moment of the file system and
// returns it.
func (dr *Draft) Touch() (time.Time, error) {
	err := dr.touch()
	return dr.modified(), err
}

// Made is the draft's mtime: when its content was written.
func (dr *Draft) Made() time.Time { return dr.modified() }

// Withdraw takes a linked draft out of place again, stamping nothing.
func (dr *Draft) Withdraw() error {
	mine, err := dr.named()
	if err != nil || !mine {
		return err
	}
	return dr.wrap(retry(func() error { return unix.Unlinkat(dr.dir.fd, dr.name, 0) }))
}

// Close lets go of the guard and leaves the file as it is.
func (dr *Draft) Close() error { return dr.file.Close() }

// Discard gives up a draft that was not put in place.
func (dr *Draft) Discard() {
	dr.dropTemporary()
	dr.Close()
}

func (dr *Draft) dropTemporary() {
	if dr.temporary != "" {
		unix.Unlinkat(dr.dir.fd, dr.temporary, 0) // Sweep has it otherwise
		dr.temporary = ""
	}
}

func (dr *Draft) namedNow(name string) bool {
	probe := file{dir: dr.dir, name: name, fd: dr.fd, st: dr.st}
	mine, err := probe.named()
	return err == nil && mine
}

// sweepAge is how old a temp.* file must be before it counts as debris: its
// maker needs microseconds to guard it.
const sweepAge = time.Minute

// Sweep removes the temp.* files that crashed makers left behind: those older
// than a minute at the moment 'now' of the file system, and not guarded. (A last
// lock in the making has the old one's mtime, so age alone proves nothing.) What
// only begins with the same word (temp.notes, a directory) is somebody else's:
// it stays, and does not stand in the way of a takeover.
func (d *Dir) Sweep(now time.Time) error {
	names, err := d.Names(draftPrefix)
	if err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		if isToken(name) {
			failed = errors.Join(failed, d.sweepOne(draftPrefix+name, now))
		}
	}
	return failed
}

func (d *Dir) sweepOne(name string, now time.Time) error {
	f, err := d.openFile(name, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) || exit.Code(err) == exit.NotPermitted {
		return nil // put in place by now, or nothing that was made here
	}
	if err != nil {
		return err
	}
	defer f.Close()
	// What is in place under another name too has that one's mtime, and a last
	// lock may be stamped more often than once a minute for ever: there the guard
	// alone tells.
	if f.st.Nlink < 2 && now.Sub(f.modified()) < sweepAge {
		return nil
	}
	if free, err := f.flock(0); err != nil || !free {
		return err
	}
	err = retry(func() error { return unix.Unlinkat(d.fd, name, 0) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.wrap(err)
}

// Named reports whether drafts here have names of their own while they are
// made: whether a crash can leave temp.* files even where nothing was replaced.
func (dr *Draft) Named() bool { return dr.temporary != "" }

// Token returns 128 random bits in hexadecimal: the name of one acquisition.
func Token() string {
	var bits [16]byte // no secret: the runtime's generator, seeded by the kernel, will do
	binary.NativeEndian.PutUint64(bits[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(bits[8:], rand.Uint64())
	return hex.EncodeToString(bits[:])
}

// isToken reports whether text can have been made by Token.
func isToken(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// setModified gives the draft an mtime before it is put in place; the zero time
// becomes the epoch, which a last lock takes for 'never completed'.
func (dr *Draft) setModified(at time.Time) error {
	if at.IsZero() {
		at = time.Unix(0, 0)
	}
	return dr.wrap(retry(func() error { return setModified(dr.fd, at) }))
}
