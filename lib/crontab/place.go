package crontab

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"adlock/lib/fault"
)

// These are the places of crontabs on Debian, Red Hat, SUSE, the BSDs and with busybox. Lines of the system's crontabs
// name users; in spools, each file is named after its user.
const (
	systemTab = "/etc/crontab"
	systemDir = "/etc/cron.d"
)

var spools = []string{"/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/spool/cron", "/var/cron/tabs", "/etc/crontabs"}

// System returns the files where cron looks for crontabs, without copies by an editor or a package, and the
// errors of unreadable directories. Unread says which of the files cron skips. Tests put root before all paths.
func System(root string) (paths []string, failed []error) {
	var found []os.FileInfo
	if info, err := os.Stat(root + systemTab); err == nil {
		paths, found = append(paths, root+systemTab), append(found, info)
	}
	for _, dir := range append([]string{systemDir}, spools...) {
		entries, err := os.ReadDir(root + dir)
		if err != nil && !os.IsNotExist(err) {
			failed = append(failed, fault.Wrap(root+dir, err))
		}
		for _, entry := range entries {
			path := filepath.Join(root+dir, entry.Name())
			info, err := os.Stat(path)
			isFound := func(other os.FileInfo) bool { return os.SameFile(info, other) } // one spool may be a link to another
			if err == nil && info.Mode().IsRegular() && !isCopy(entry.Name()) && !slices.ContainsFunc(found, isFound) {
				paths, found = append(paths, path), append(found, info)
			}
		}
	}
	return paths, failed
}

func isCopy(name string) bool {
	return name[0] == '.' || strings.HasSuffix(name, "~") || strings.Contains(name, ".dpkg-") || strings.Contains(name, ".rpm")
}

// debian exists on Debian, where cron skips files with names that run-parts(8) would skip.
const debian = "/etc/debian_version"

var runPartsName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Unread returns why cron never reads a file of systemDir (cron(8), FILES), and the cure; "" for any other file.
func Unread(path string) (reason, cure string) {
	info, err := os.Stat(path)
	whole, unknown := filepath.Abs(path)
	if cmp.Or(err, unknown) != nil || filepath.Dir(whole) != systemDir {
		return "", ""
	}
	_, isOther := os.Stat(debian)
	return neverRead(info, filepath.Base(path), isOther == nil)
}

func neverRead(info os.FileInfo, name string, isDebian bool) (reason, cure string) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case isDebian && !runPartsName.MatchString(name):
		return "Debian's cron passes over a name with other characters than letters, digits, - and _", "rename it"
	case info.Mode()&0o022 != 0:
		return "others than its owner may write to it", "chmod go-w it"
	case ok && stat.Uid != 0:
		return "it does not belong to root", "chown root it"
	}
	return "", ""
}

// Place returns whether lines of the crontab at path name users. If the crontab is one user's own, user is that user.
func Place(path string) (userColumn bool, user string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return false, ""
	}
	if slices.Contains(spools, filepath.Dir(path)) {
		user = filepath.Base(path)
	}
	return path == systemTab || filepath.Dir(path) == systemDir, user
}
