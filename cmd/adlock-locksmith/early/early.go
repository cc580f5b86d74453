// Package early runs the processes that use the locksmith's program file for other work, such as the job at its gate
// or the watchdog of a lease. It runs them in its init, before the client libraries are initialised: that takes three
// times as long as the rest of such a process's start.
//
// Packages are initialised in the order of their import paths, each after its imports ("adlock/…" before
// "github.com/…"). So this package and its imports must not import the client libraries. Nor may they
// import a package that comes late in the alphabet and that the client libraries do not need, such as
// path/filepath: the client libraries would be initialised before that package. A test checks the order.
package early

import (
	"os"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/lease/watchdog"
	"adlock/lib/process"
	"adlock/lib/supervise"
)

func init() {
	if err := config.CheckPrivilege(); err != nil {
		fault.Report(err)
		os.Exit(fault.StatusOf(err))
	}
	process.OrphanMain()
	hook.Main()
	supervise.Gate()
	watchdog.Main()
}
