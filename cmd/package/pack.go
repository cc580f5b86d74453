package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// revision is the packages' own number, behind that of adlock.
const revision = "1"

const summary = "adaptive locks for cron lines, scripts and Makefiles"

const description = summary + `
adlock runs a job whose running time nobody can predict at most once at a
time. It knows whether the job is running, whether it ran too short a time
ago, and when to end one that hangs, with all that it started, and take
over. One line in a crontab, SHELL=/usr/lib/adlock/shell, puts every line
below it under such locks.
.
There is a helper for crontab lines, a library for POSIX shell scripts, a
fragment for Makefiles, and reports on what ran, was denied or was ended.
No daemon is started.`

// pack makes the package of one format.
func (o order) pack(format string) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	made, err := os.MkdirTemp("", "adlock-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	contents, err := o.contents(format, made)
	if err != nil {
		return err
	}
	before, err1 := o.script("prerm", made)
	after, err2 := o.script("postrm", made)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "adlock", Arch: o.arch, Version: o.version, Release: releaseOf(format), Maintainer: o.maintainer,
		Section: "admin", Priority: "optional", Description: description, MTime: o.when,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Suggests: suggests(format),
			Scripts:  nfpm.Scripts{PreRemove: before, PostRemove: after},
			RPM:      nfpm.RPM{BuildHost: "localhost", Summary: summary},
		},
	})
	if format != "deb" { // whose copyright tells
		info.License = "MIT"
	}
	return o.result(packager.ConventionalFileName(info), func(f *os.File) error { return packager.Package(info, f) })
}

// script is a copy of a script, of the time that all files have: an apk tells its.
func (o order) script(name, made string) (path string, err error) {
	path = filepath.Join(made, name)
	text, err := os.ReadFile(filepath.Join(o.scripts, name))
	if err == nil {
		err = os.WriteFile(path, text, 0o755)
	}
	if err == nil {
		err = os.Chtimes(path, o.when, o.when)
	}
	return path, err
}

func releaseOf(format string) string {
	if format == "apk" {
		return "r" + revision
	}
	return revision
}

// suggests is what others offer that goes well with adlock. It needs nobody.
func suggests(format string) []string {
	if format == "deb" {
		return []string{"cron | cron-daemon", "logrotate"}
	}
	return nil
}
