// Package early is what a process of the locksmith may have to be instead of a
// locksmith: the job behind its gate, or a guard. It runs in this package's
// init, before the client libraries are initialised, which takes three times as long as
// all the rest of such a process's start.
//
// The linker sorts packages by import path: of those whose imports are initialised the
// first comes next ("adlock/…" before "github.com/…"). So what this one imports, and what
// that imports, must never import them; nor anything that they do without and that comes
// late in the alphabet, as it would wait for them: path/filepath, for one. A test looks at
// the order.
package early

import (
	"os"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/lease/guarding"
	"adlock/lib/orphan"
	"adlock/lib/supervise"
)

func init() {
	if err := config.CheckPrivilege(); err != nil {
		fault.Report(err)
		os.Exit(fault.StatusOf(err))
	}
	orphan.Main()
	hook.Main()
	supervise.Gate()
	guarding.Main()
}
