package way

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
)

// Follow returns the path of the file that `> name` would write, which need not exist: replacing it replaces the content
// of name. Follow first asks the kernel whether a link may be followed (fs.protected_symlinks). It refuses a link to an
// open file, as /dev/stdout is: its process would go on writing into it after it was replaced.
func Follow(name string) (string, error) {
	there, err := os.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if to, err := os.Readlink(name); err != nil || to == "" {
		return Plain(name)
	}
	end, err := lastOf(name)
	if err != nil {
		return "", err
	}
	if found, err := os.Lstat(end); there != nil && (err != nil || !os.SameFile(found, there)) {
		return "", errOpen(name)
	}
	return end, nil
}

// Plain returns a name whose text has no "..", and leads where name does.
func Plain(name string) (string, error) {
	if !slices.Contains(strings.Split(name, "/"), "..") {
		return name, nil
	}
	return resolved(name)
}

// resolved returns the path without links above its last name, also without those of /proc, which mean more than their text.
func resolved(name string) (string, error) {
	if strings.HasSuffix(name, "/") {
		name += "." // walk drops the slash, and with it that the name is a directory's
	}
	return walk(name, func(string, *unix.Stat_t) error { return nil })
}

func errOpen(name string) error {
	return fault.New(fault.CannotCreate, name, "is an open file, and cannot be replaced: want the file's own name")
}

// lastOf follows links to the last target, and returns its path, with the links of its directory resolved.
func lastOf(asked string) (string, error) {
	end := asked
	for range MostLinks {
		plain, err := resolved(end)
		if err != nil {
			return "", err
		}
		to, err := os.Readlink(plain)
		if err != nil {
			return plain, nil
		}
		if strings.HasPrefix(plain, "/proc/") {
			return "", errOpen(asked)
		}
		if end = to; !path.IsAbs(to) {
			end = path.Dir(plain) + "/" + to
		}
	}
	return "", &fs.PathError{Op: "follow", Path: end, Err: unix.ELOOP}
}
