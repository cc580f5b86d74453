package main

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/crontab"
	"adlock/lib/doctor"
	"adlock/lib/insight/terminal"
)

var doctorVerb = verb{
	options: func(*query) []config.Option { return nil },
	show:    showDoctor,
}

func showDoctor(*query) error {
	m, err := machine()
	if err != nil {
		return err
	}
	tellStore("doctor")
	all := m.Examine(time.Now())
	text, paint := "", terminal.Colours(os.Stdout)
	for _, f := range all {
		text += paint.Text(styleOf[f.Grade], terminal.Pad(string(f.Grade), 4)) + " " + f.String() + "\n"
	}
	if err := write([]byte(text)); err != nil {
		return err
	}
	if !doctor.Fit(all) {
		return errFound
	}
	return nil
}

var styleOf = map[doctor.Grade]terminal.Style{doctor.Fine: terminal.Green, doctor.Warn: terminal.Yellow, doctor.Fail: terminal.Red}

// systemCrontabs are the crontabs with a user column.
func systemCrontabs() []string {
	files, _ := filepath.Glob("/etc/cron.d/*") // the pattern is right
	return append([]string{"/etc/crontab"}, files...)
}

// homelessUsers are those of crontabs with a user column. One that may not be read tells
// nothing.
func homelessUsers(files []string) (users []string) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, user := range crontab.Homeless(crontab.Read(string(text), true), isHomeless) {
			if !slices.Contains(users, user) {
				users = append(users, user)
			}
		}
	}
	return users
}

// machine is this one, as this user has it.
func machine() (*doctor.Machine, error) {
	logDir, err := config.RunlogDir()
	if err != nil {
		return nil, err
	}
	dir, err := config.Dir()
	if err != nil {
		return nil, err
	}
	host, err := config.Host()
	if err != nil {
		return nil, err
	}
	self, _ := os.Executable() // an error: there is no /proc, which a finding reports
	programs := filepath.Dir(self)
	m := &doctor.Machine{
		Dir: dir, LogDir: logDir, Host: atom.Canonify(host),
		Programs: programs, Version: config.Version(), Libraries: doctor.LibrariesOf(programs), CronPath: crontab.DefaultPath,
	}
	m.Homeless = homelessUsers(systemCrontabs())
	if store := os.Getenv("ADLOCK_STORE"); config.IsRemote(store) {
		m.Remote = store
	}
	return m, nil
}
