package way

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
)

// Follow returns the path of the file that `> name` would write: replacing that file replaces the content of name. If
// name is a link, the result is the link's last target, which need not exist. Follow first asks the kernel whether the
// link may be followed (fs.protected_symlinks). It refuses a link that leads to an open file, as /dev/stdout does. Such
// a file may have no path, and the process that has it open would go on writing into it after it was replaced.
func Follow(name string) (string, error) {
	there, err := os.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if to, err := os.Readlink(name); err != nil || to == "" {
		return name, nil
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

func errOpen(name string) error {
	return fault.New(fault.CannotCreate, name, "is an open file, and cannot be replaced: want the file's own name")
}

// lastOf follows links to the last target, and returns its path, with the links of its directory resolved.
func lastOf(asked string) (string, error) {
	end := asked
	for range MostLinks {
		plain, err := walk(end, func(string, *unix.Stat_t) error { return nil })
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
