package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"adlock/lib/fault"
)

// The places of crontabs on Debian, Red Hat, SUSE and the BSDs and with busybox: first those of the
// system, whose lines name users; spools has those of users, each file named after its user.
const (
	systemTab = "/etc/crontab"
	systemDir = "/etc/cron.d"
)

var spools = []string{"/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/spool/cron", "/var/cron/tabs", "/etc/crontabs"}

// System returns the crontabs that cron reads on this machine, and the errors of unreadable
// directories. A file named like a copy by an editor or a package is left out. root is put before
// all paths; it is "" outside tests.
func System(root string) (paths []string, failed []error) {
	if _, err := os.Stat(root + systemTab); err == nil {
		paths = append(paths, root+systemTab)
	}
	for _, dir := range append([]string{systemDir}, spools...) {
		entries, err := os.ReadDir(root + dir)
		if err != nil && !os.IsNotExist(err) {
			failed = append(failed, fault.Wrap(root+dir, err))
		}
		for _, entry := range entries {
			path := filepath.Join(root+dir, entry.Name())
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !isCopy(entry.Name()) && !slices.ContainsFunc(paths, sameAs(info)) {
				paths = append(paths, path)
			}
		}
	}
	return paths, failed
}

func isCopy(name string) bool {
	return name[0] == '.' || strings.HasSuffix(name, "~") || strings.Contains(name, ".dpkg-") || strings.Contains(name, ".rpm")
}

// sameAs returns a function that reports whether a path leads to that file, as when one spool is
// a link to another.
func sameAs(info os.FileInfo) func(path string) bool {
	return func(path string) bool {
		other, err := os.Stat(path)
		return err == nil && os.SameFile(info, other)
	}
}

// place tells from the path of a crontab whether its lines name users and, if it is a user's own,
// which user's.
func place(path string) (userColumn bool, user string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return false, ""
	}
	if slices.Contains(spools, filepath.Dir(path)) {
		user = filepath.Base(path)
	}
	return path == systemTab || filepath.Dir(path) == systemDir, user
}
