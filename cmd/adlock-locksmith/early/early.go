// Package early is what a process of the locksmith may have to be instead of a
// locksmith: the job behind its gate, or a guard. It runs in this package's
// init, before the client libraries are initialised: the language sorts packages
// by import path ("adlock/…" before "github.com/…"), so this one and its imports
// must never import them.
package early

import (
	"os"

	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/store"
	"adlock/lib/supervise"
)

func init() {
	if err := command.CheckPrivilege(); err != nil {
		exit.Report(err)
		os.Exit(exit.Code(err))
	}
	supervise.Gate()
	store.Guard()
}
