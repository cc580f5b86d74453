// Command adlock-report shows people the state of the locks and the runlog, and looks for
// mistakes: `adlock status`, `log`, `report`, `timeline`, `metrics`, `tune`, `check` and
// `doctor` become this program; so do `wrap`, which puts a crontab under locks, and `init`,
// which makes lock directories. Otherwise it only reads, except `tune --reset`, so no error
// here stops a job.
// `tune --reset`, so nothing that goes wrong here stops a job.
package main

import (
	"os"

	"adlock/lib/doctor"
)

func main() {
	doctor.Main()
	carryOut(program(), os.Args[1:])
}

// verbs are the verbs by the names that config.Reports has.
var verbs = map[string]verb{
	"status": statusVerb, "log": logVerb, "report": reportVerb,
	"timeline": timelineVerb, "metrics": metricsVerb, "tune": tuneVerb,
	"check": checkVerb, "wrap": wrapVerb, "init": initVerb, "doctor": doctorVerb,
}
