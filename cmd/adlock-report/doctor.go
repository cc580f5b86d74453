package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/crontab"
	"adlock/lib/doctor"
	"adlock/lib/fault"
	"adlock/lib/insight/terminal"
	"adlock/lib/run"
)

var doctorVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{{Name: "json", Help: "as JSON, one array", Set: config.Toggle(&q.json)}}
	},
	show: showDoctor,
}

func showDoctor(q *query) error {
	m, err := machine()
	if err != nil {
		return err
	}
	all := m.Examine(time.Now())
	var text []byte
	paint := terminal.Colours(os.Stdout)
	for _, f := range all {
		text = append(text, paint.Text(styleOf[f.Grade], terminal.Pad(string(f.Grade), 4))+" "+f.String()+"\n"...)
	}
	if q.json {
		text = arrayOf(all, findingObject)
	}
	if err := write(text); err != nil || doctor.Fit(all) {
		return err
	}
	return errFound
}

func findingObject(f doctor.Finding) any {
	return struct {
		Grade doctor.Grade `json:"grade"`
		What  string       `json:"what"`
		Text  string       `json:"text"`
		Cure  string       `json:"cure,omitempty"`
	}(f)
}

var styleOf = map[doctor.Grade]terminal.Style{doctor.Fine: terminal.Green, doctor.Warn: terminal.Yellow, doctor.Fail: terminal.Red}

func systemCrontabs() []string {
	files, _ := crontab.System("") // what cannot be read is not examined
	return slices.DeleteFunc(files, func(path string) bool { isSystem, _ := crontab.Place(path); return !isSystem })
}

// homelessUsers returns the users who have jobs in these files that seem to use adlock, but can have no lock directory,
// each with the cure. Root starts a child only for such a job: the doctor must also examine a machine that cannot start one.
func homelessUsers(files []string) map[string]string {
	as, failed := userTest()
	look := homelessTest(as)
	homeless := func(name, home string) bool {
		if failed == nil && os.Geteuid() == 0 {
			failed = continueInChild()
		}
		return failed == nil && look(name, home)
	}
	cures := map[string]string{}
	for _, file := range files {
		text, err := readText(file)
		if never, _ := crontab.Unread(file); err != nil || never != "" {
			continue
		}
		for _, user := range crontab.Homeless(crontab.Read(text, true), homeless) {
			cures[user] = crontab.HomeCure(user, homeless)
		}
	}
	if failed != nil {
		fault.Report(failed)
	}
	return cures
}

func machine() (*doctor.Machine, error) {
	logDir, err := config.RunlogDir()
	dir, failed := config.Dir()
	if err = cmp.Or(err, failed); fault.KindOf(err) == fault.Misconfigured { // m.Mistakes has this error
		dir, logDir, err = "", "", nil
	}
	if err != nil {
		return nil, err
	}
	host, err := thisHost()
	if host == "" { // if there is a host too, the error becomes a finding
		return nil, err
	}
	self, _ := os.Executable() // it fails only without /proc, which a finding reports
	m := &doctor.Machine{
		Dir: dir, LogDir: logDir, HomeDir: config.DirElsewhere(dir), Host: atom.Canonify(host),
		Programs: filepath.Dir(self), CronPath: crontab.DefaultPath,
		Mistakes: config.Mistakes(run.Options), Fleeting: config.Fleeting, Mailers: []string{"/usr/sbin/sendmail", "/usr/lib/sendmail"},
		Hooked: os.Getenv("ADLOCK_HOOK") != "" || config.IsFiled("ADLOCK_HOOK"), Remote: store(), TryStore: tryStore,
	}
	if log, err := config.RunlogOf(dir, m.Host); err == nil {
		m.LogMax = log.Max
	}
	m.Services, _ = filepath.Glob("/etc/systemd/system/*.service") // the pattern is valid
	if err := config.Toggle(&m.Syslog)(cmp.Or(os.Getenv("ADLOCK_SYSLOG"), config.FromFiles("")["ADLOCK_SYSLOG"].Value, "no")); err != nil {
		return nil, &fault.Error{Kind: fault.Usage, Object: "ADLOCK_SYSLOG", Err: err}
	}
	m.Homeless = homelessUsers(systemCrontabs())
	return m, nil
}
