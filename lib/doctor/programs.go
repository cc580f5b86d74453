package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"adlock/lib/config"
	"adlock/lib/fault"
)

const helper = "adlock"

const install = "install programs and library together (make && sudo make install)"

func (m *Machine) programs() []Finding {
	self := fine(config.Reporter, filepath.Join(m.Programs, config.Reporter))
	return []Finding{m.program(helper), self, m.partner(), m.cron(), m.shell(), m.library()}
}

func (m *Machine) program(name string) Finding {
	path := filepath.Join(m.Programs, name)
	if _, err := os.Stat(path); err != nil {
		return fail(name, fault.Wrap(path, err).Error(), install)
	}
	return fine(name, path)
}

// partner finds nothing wrong with a missing adlock-locksmith if there is no store beyond this machine.
func (m *Machine) partner() Finding {
	found := m.program(config.Locksmith)
	if found.Grade == Fail && m.Remote == "" {
		return fine(config.Locksmith, "is not installed (only stores beyond this machine need it)")
	}
	return found
}

func (m *Machine) cron() Finding {
	const what = "cron"
	mine := filepath.Join(m.Programs, helper)
	for _, dir := range filepath.SplitList(m.CronPath) {
		path := filepath.Join(dir, helper)
		found, err := os.Stat(path)
		if err != nil {
			continue
		}
		if own, err := os.Stat(mine); err != nil || !os.SameFile(found, own) {
			return warn(what, "on its PATH ("+m.CronPath+") is "+path+", and not "+mine, "say "+mine+" in crontabs, or remove the other")
		}
		return fine(what, "its PATH ("+m.CronPath+") has "+path)
	}
	return fine(what, "say "+mine+" in crontabs: cron's PATH ("+m.CronPath+") does not have it")
}

// shell examines adlock's shell for crontabs: if it cannot be run, cron runs no job below a SHELL= line that names it.
func (m *Machine) shell() Finding {
	const what = "shell"
	path := filepath.Join(filepath.Dir(m.Programs), "lib/adlock/shell")
	switch err := unix.Access(path, unix.X_OK); {
	case errors.Is(err, fs.ErrNotExist):
		return fine(what, "is not installed (only crontabs that name it as their SHELL need it)")
	case err != nil:
		return fail(what, path+" cannot be run", "chmod 755 "+path)
	}
	return fine(what, "say SHELL="+path+" in a crontab to guard its lines")
}

// library finds the adlock.sh installed with these programs, else that of another installation or a source tree.
func (m *Machine) library() Finding {
	const what, below = "adlock.sh", "lib/adlock/adlock.sh" // below the prefix, where the Makefile and the packages put it
	above := filepath.Dir(m.Programs)
	for _, path := range []string{
		filepath.Join(above, below), filepath.Join("/usr/local", below), filepath.Join("/usr", below),
		filepath.Join(above, "sh/adlock.sh"), // of a source tree
	} {
		if _, err := os.Stat(path); err == nil {
			return fine(what, path)
		}
	}
	return fine(what, "is not installed (only scripts that source it need it)")
}
