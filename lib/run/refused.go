package run

import (
	"os"
	"path/filepath"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lockdir"
	"adlock/lib/supervise"
	"adlock/lib/sysfile"
)

// refused returns the error why. It records a usage error of run in the runlog: otherwise a line of a crontab that is
// refused each night would leave no trace. Nothing is recorded for a person at a terminal, for a dry run, or
// if the atom or the lock directory is unknown.
func refused(args []string, why error) error {
	if fault.KindOf(why) != fault.Usage || sysfile.IsTerminal(0) || sysfile.IsTerminal(2) {
		return why
	}
	r := newRun()
	words := r.From.Guess(r.options(), args, IsCommand)
	if r.dryRun || len(words) == 0 && r.name == "" {
		return why
	}
	if r.store == "" {
		var unplaced error
		if r.store, unplaced = config.Store(); unplaced != nil {
			return why
		}
	}
	base, _, _ := find(append(words, "")[0])
	if r.nameAtom(base, words) != nil {
		return why
	}
	dir, rec, _ := r.recorder() // why already reports a wrong ADLOCK_LOG_MAX
	if rec.Log == nil {
		return why
	}
	rec.Hook = nil
	if k, err := lockdir.Open(dir, rec); err == nil {
		defer k.Dir.Close()
		r.Request.Owner.PID = os.Getpid()
		k.Refused(&r.Request, why)
	}
	return why
}

func IsCommand(word string) bool {
	_, err := supervise.Find(word)
	return err == nil
}

// find returns a command's path, or why it is missing, and a base name for files, metrics and hooks.
func find(word string) (base, path string, missing error) {
	if path, missing = supervise.Find(word); missing != nil {
		return harmless(word), path, missing
	}
	return filepath.Base(word), path, nil
}
