package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/config"
	"adlock/lib/sysfile"
	"adlock/lib/way"
)

// helper is the program that scripts and crontabs call.
const helper = "adlock"

const again = "install programs and library again, together (make && sudo make install)"

// programs compares the versions of the three programs, of which this is one, and reports whether
// crontabs find the helper.
func (m *Machine) programs() []Finding {
	self := fine(config.Reporter, filepath.Join(m.Programs, config.Reporter)+", version "+m.Version)
	return []Finding{m.program(helper), self, m.partner(), m.cron(), m.shell()}
}

func (m *Machine) program(name string) Finding {
	path := filepath.Join(m.Programs, name)
	version, err := versionOf(path)
	if err != nil {
		return fail(name, path+": "+err.Error(), again)
	}
	return m.compared(name, path, version)
}

// partner examines the program for stores beyond this machine; without such a store it may be
// missing.
func (m *Machine) partner() Finding {
	path := filepath.Join(m.Programs, config.Locksmith)
	if _, err := os.Stat(path); err == nil {
		return m.program(config.Locksmith)
	}
	if m.Remote != "" {
		return fail(config.Locksmith, "is not installed, and ADLOCK_STORE is "+m.Remote, again)
	}
	return fine(config.Locksmith, "is not installed (only stores beyond this machine need it)")
}

// compared reports whether a version is this program's: programs of different releases may not
// agree on a file's format or on their arguments.
func (m *Machine) compared(what, path, version string) Finding {
	text := path + " is of version " + version
	switch {
	case version == m.Version:
		return fine(what, path+", version "+version)
	case release(version) == release(m.Version):
		return warn(what, text+", "+config.Reporter+" of "+m.Version, again)
	}
	return fail(what, text+", "+config.Reporter+" of "+m.Version, again)
}

// release is a version without the commit.
func release(version string) string {
	number, _, _ := strings.Cut(version, " ")
	return number
}

// versionOf asks a program for its version.
func versionOf(path string) (string, error) {
	const most = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	command := exec.CommandContext(ctx, path, "--version")
	command.WaitDelay = most // a process that it has started may keep the pipe open
	text, err := command.Output()
	_, version, told := strings.Cut(strings.TrimSpace(string(text)), " version ")
	if err == nil && !told {
		err = errors.New("does not tell its version")
	}
	return version, err
}

// cron tells how a line of a crontab calls the helper.
func (m *Machine) cron() Finding {
	const what = "cron"
	mine := filepath.Join(m.Programs, helper)
	for _, dir := range filepath.SplitList(m.CronPath) {
		path := filepath.Join(dir, helper)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if !same(path, mine) {
			return warn(what, "on its PATH ("+m.CronPath+") is "+path+", and not "+mine, "say "+mine+" in crontabs, or remove the other")
		}
		return fine(what, "its PATH ("+m.CronPath+") has "+path)
	}
	return fine(what, "say "+mine+" in crontabs: cron's PATH ("+m.CronPath+") does not have it")
}

// shell reports which SHELL guards a crontab, and whether it finds its helper: if it does not,
// cron runs nothing of that crontab.
func (m *Machine) shell() Finding {
	const what = "shell"
	path := filepath.Join(filepath.Dir(m.Programs), "lib/adlock/shell")
	text, err := asFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fine(what, "is not installed (only crontabs that name it as their SHELL need it)")
	case err != nil:
		return fail(what, err.Error(), again)
	case !trusted(path):
		return fail(what, path+" can be changed by another user", "install one that is root's")
	case unix.Access(path, unix.X_OK) != nil:
		return fail(what, path+" cannot be run", "chmod 755 "+path)
	}
	return m.named(what, path, text, "say SHELL="+path+" in a crontab to guard its lines")
}

func same(one, other string) bool {
	a, err := os.Stat(one)
	b, err2 := os.Stat(other)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// libraries examines each library that is there.
func (m *Machine) libraries() (all []Finding) {
	var seen []string
	for _, path := range m.Libraries {
		if _, err := os.Stat(path); err != nil || slices.ContainsFunc(seen, func(p string) bool { return same(p, path) }) {
			continue
		}
		seen = append(seen, path)
		all = append(all, m.library(path))
	}
	if len(all) == 0 {
		all = append(all, fine("adlock.sh", "is not installed (only scripts that source it need it)"))
	}
	return all
}

// library reports whether the library's version is the programs', and whether the helper that it
// names exists and is the one beside this program.
func (m *Machine) library(path string) Finding {
	const what = "adlock.sh"
	text, err := asFile(path)
	switch {
	case err != nil:
		return fail(what, err.Error(), again)
	case !trusted(path): // the helper that it names must not be run
		return warn(what, path+" can be changed by another user", "source one of root's or of your own")
	}
	if version := setting(text, "_adlock_version"); version != release(m.Version) {
		return fail(what, path+" is of version "+version+", "+config.Reporter+" of "+m.Version, again)
	}
	return m.named(what, path, text, path+", version "+release(m.Version))
}

// named reports whether the helper that a script names exists and has this version; says is the
// finding's text if it does.
func (m *Machine) named(what, path, text, says string) Finding {
	named := setting(text, "_adlock_installed")
	if named == "" || same(named, filepath.Join(m.Programs, helper)) {
		return fine(what, says)
	}
	version, err := versionOf(named)
	switch {
	case err != nil:
		return fail(what, path+" wants the helper "+named+": "+err.Error(), again)
	case release(version) != release(m.Version):
		return fail(what, path+" wants the helper "+named+", which is of version "+version, again)
	}
	return fine(what, says+", with "+named)
}

// trusted reports whether a file is root's or this user's, and no other user may write to it.
func trusted(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && sysfile.IsOurs(&st) && !way.OthersMayWrite(path, &st)
}

// setting returns what the library sets a variable to, without quotes and comment.
func setting(text, name string) string {
	_, rest, _ := strings.Cut(text, "\n"+name+"=")
	line, _, _ := strings.Cut(rest, "\n")
	if quoted, ok := strings.CutPrefix(line, "'"); ok {
		line, _, _ = strings.Cut(quoted, "'")
	}
	line, _, _ = strings.Cut(line, " #")
	return strings.TrimSpace(line)
}
