// Command adlock-report tells people what the locks are doing and what their
// record teaches: `adlock status`, `log`, `report`, `timeline`, `metrics` and
// `tune` hand over to it. It only reads, save `tune --reset`, and nothing that
// goes wrong here is any job's business.
package main

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"adlock/lib/app"
)

// version is set by the Makefile.
var version = "unreleased"

func main() {
	app.Run(filepath.Base(os.Args[0]), "what adlock's locks are doing, and what their record teaches", version, []*cli.Command{
		statusVerb(), logVerb(), reportVerb(), timelineVerb(), metricsVerb(), tuneVerb(),
	})
}
