package protocol

import (
	"fmt"
	"os"
	"testing"

	"adlock/test/support/helper"
)

// TestMain runs the tests, unless this binary was started as a second process: a worker of a
// history, or the stage of a storm.
func TestMain(m *testing.M) {
	contender, stage := os.Getenv(workerEnv), os.Getenv(stageEnv)
	var err error
	switch {
	case contender != "":
		err = worker(contender)
	case stage != "":
		err = play(stage)
	default:
		helper.Main(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
