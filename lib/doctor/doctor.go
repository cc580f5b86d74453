// Package doctor examines whether a machine is fit to keep locks, by the same functions that adlock calls for each
// lock. The result is for one time and one user: cron may run a job with other limits.
package doctor

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/lease/listing"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
)

type Grade string

// Only Fail means that the machine cannot keep locks.
const (
	Fine Grade = "ok"
	Warn Grade = "warn"
	Fail Grade = "fail"
)

type Finding struct {
	Grade Grade
	What  string
	Text  string // the state, or what is wrong with it
	Cure  string // "": nothing is wrong, or Text has the cure
}

func (f Finding) String() string {
	text := f.Text
	if f.Cure != "" {
		text += "; " + f.Cure
	}
	return f.What + ": " + fault.Plain(text)
}

func fine(what, text string) Finding      { return Finding{Grade: Fine, What: what, Text: text} }
func warn(what, why, cure string) Finding { return Finding{Warn, what, why, cure} }
func fail(what, why, cure string) Finding { return Finding{Fail, what, why, cure} }

// Machine is what the caller of Examine knows about the machine. Examine finds out the rest.
type Machine struct {
	Dir, LogDir string                        // of the locks and of the runlog; "": unknown, as a settings file has a mistake
	LogMax      int64                         // the size in bytes above which a runlog is rotated; 0: the default
	HomeDir     string                        // the lock directory with the HOME of passwd(5); "": no other than Dir
	Host        string                        // its canonical name
	Fleeting    func(dir string) (why string) // why locks in a directory do not last; "": they do
	Remote      string                        // the store beyond this machine that jobs use; "": none

	TryStore func() (listing.Trial, error) // tries Remote; nil: it is not tried

	Programs string            // the directory in which the programs are
	CronPath string            // PATH in a crontab that does not set it
	Services []string          // files of systemd's services that an administrator has written
	Mailers  []string          // the programs by which cron mails; one is enough
	Hooked   bool              // a hook is started when there is trouble
	Syslog   bool              // messages go to the system's log too (ADLOCK_SYSLOG)
	Mistakes []error           // in the settings files
	Homeless map[string]string // users with locked jobs in the system's crontabs who can have no lock directory, each with the cure
}

// Examine returns the findings in the order in which to mend them.
func (m *Machine) Examine(now time.Time) (all []Finding) {
	if all = processes(); !Fit(all) {
		return all
	}
	if m.Dir != "" {
		all = append(all, m.directory(now)...)
		if Fit(all) || m.LogDir != m.Dir {
			all = append(all, m.runlog()...)
		}
	}
	all = append(append(all, m.store()...), m.settings()...)
	for _, user := range slices.Sorted(maps.Keys(m.Homeless)) {
		all = append(all, warn("users", user+" has jobs under adlock in a crontab of the system, and can make no lock directory at home: they never run", m.Homeless[user]))
	}
	all = append(all, hostPause()...)
	all = append(append(all, m.services()...), m.syslog(), m.mail(), limits())
	return append(all, m.programs()...)
}

const pauseFinding = "pause"

func hostPause() []Finding {
	host, err := locker.HostPause()
	if err != nil {
		return []Finding{fail(pauseFinding, err.Error(), "")} // the error contains the cure
	}
	return longPause("all jobs of this host", host, "as root: adlock resume --all")
}

func longPause(of string, p policy.Pause, cure string) []Finding {
	if !p.On || p.Age < 24*time.Hour {
		return nil
	}
	return []Finding{warn(pauseFinding, of+": "+p.Reason()+"; began "+limit.FormatAge(p.Age)+" ago", cure)}
}

func (m *Machine) syslog() Finding {
	const what = "syslog"
	path, err := hook.LogSocket()
	switch {
	case err == nil:
		return fine(what, path+" takes messages, for ADLOCK_SYSLOG=1")
	case m.Syslog:
		return warn(what, path+": "+err.Error()+": ADLOCK_SYSLOG is set and does nothing", "start a syslogd or journald")
	}
	return fine(what, path+": "+err.Error()+" (only ADLOCK_SYSLOG needs it)")
}

func (m *Machine) mail() Finding {
	const what = "mail"
	for _, path := range m.Mailers {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return fine(what, path+" is there, for cron")
		}
	}
	none := strings.Join(m.Mailers, ", ") + ": not there, so cron mails nothing"
	if _, err := hook.LogSocket(); m.Hooked || m.Syslog && err == nil {
		return fine(what, none+" (trouble is told by a hook or the system's log)")
	}
	return warn(what, none+": trouble with the locks of its jobs is told to nobody", "install a mailer (msmtp-mta, nullmailer), or say ADLOCK_HOOK or ADLOCK_SYSLOG=1 in /etc/adlock.conf")
}

func (m *Machine) settings() (all []Finding) {
	const what = "settings"
	if len(m.Mistakes) == 0 {
		for _, f := range config.Files() {
			all = append(all, fine(what, f.Path))
		}
	}
	for _, err := range m.Mistakes {
		if fault.KindOf(err) == fault.Misconfigured {
			all = append(all, fail(what, err.Error(), "nothing runs until this is mended"))
			continue
		}
		all = append(all, warn(what, err.Error(), "adlock config shows what counts"))
	}
	return all
}

// Fit reports whether no finding has the grade Fail.
func Fit(all []Finding) bool {
	return !slices.ContainsFunc(all, func(f Finding) bool { return f.Grade == Fail })
}
