package run

import (
	"os"
	"path/filepath"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lockdir"
	"adlock/lib/supervise"
	"adlock/lib/sysfile"
)

// refused records in the runlog that the arguments of run were refused because of why, and returns
// why. Without that, a line of a crontab that is refused each night leaves no trace for `adlock log`
// and `status`. Nothing is recorded for a person at a terminal, or if the atom or the lock directory
// is unknown.
func refused(args []string, why error) error {
	if fault.KindOf(why) != fault.Usage || sysfile.IsTerminal(0) || sysfile.IsTerminal(2) {
		return why
	}
	r := newRun()
	words := r.From.Guess(r.options(), args, isCommand)
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
	if k, err := r.directory(); err == nil {
		defer k.Dir.Close()
		k.Refused(&r.Request, why)
	}
	return why
}

func isCommand(word string) bool {
	_, err := supervise.Find(word)
	return err == nil
}

// find finds the program of a command. base is its name for files, metrics and hooks.
func find(word string) (base, path string, missing error) {
	if path, missing = supervise.Find(word); missing != nil {
		return harmless(word), path, missing
	}
	return filepath.Base(word), path, nil
}

// directory opens the lock directory for an event of this process; for a store, the runlog of it is
// there.
func (r *runArgs) directory() (*lockdir.Locker, error) {
	path, err := config.DirOf(r.store)
	if err != nil {
		return nil, err
	}
	log, err := config.RunlogOf(path, atom.Canonify(r.Request.Atom.Host))
	if err != nil {
		return nil, err
	}
	if config.IsRemote(r.store) {
		log.Store = r.store
	}
	r.Request.Owner.PID = os.Getpid()
	return lockdir.Open(path, log)
}
