// Command adlock-report shows people the state of locks and the runlog, and looks for mistakes. `adlock
// status`, `log`, `report`, `timeline`, `metrics`, `tune`, `check`, `doctor`, `config`, `pause` and `resume` become
// it. So do `wrap`, which puts a crontab under locks, and `init`, which makes lock directories. Only `pause`,
// `resume` and `tune --reset` write into locks. No job waits for this program, so no error here stops a job.
package main

import (
	"compress/gzip"
	"io"
	"os"

	"adlock/lib/doctor"
	"adlock/lib/runlog"
)

func main() {
	runlog.Unzip = func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	doctor.Main()
	childMain()
	carryOut(program(), os.Args[1:])
}

var verbs = map[string]verb{
	"status": statusVerb, "log": logVerb, "report": reportVerb,
	"timeline": timelineVerb, "metrics": metricsVerb, "tune": tuneVerb,
	"check": checkVerb, "wrap": wrapVerb, "init": initVerb, "doctor": doctorVerb,
	"pause": pauseVerb, "resume": resumeVerb,
	"config": configVerb,
}
