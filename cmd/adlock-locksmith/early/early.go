// Package early runs the processes of the locksmith that are no locksmith: the job behind
// its gate, or a guard process (the watchdog of a lease). It runs in this package's init,
// before the client libraries are initialised, which takes three times as long as the rest
// of such a process's start.
//
// The linker sorts packages by import path: of those whose imports are initialised the
// first comes next ("adlock/…" before "github.com/…"). So neither this package nor its
// imports may ever import the client libraries; nor a package late in the alphabet that
// those do not need, as this one would wait for it: path/filepath, for example. A test
// checks the order.
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
