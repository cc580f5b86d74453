package protocol

import (
	"fmt"
	"os"
	"testing"

	"adlock/test/support/helper"
)

// TestMain runs the tests, unless this binary was started as a second process: the stage of a storm.
func TestMain(m *testing.M) {
	stage := os.Getenv(stageEnv)
	if stage == "" {
		helper.Main(m)
	}
	if err := play(stage); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
