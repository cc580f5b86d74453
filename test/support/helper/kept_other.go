//go:build !linux

package helper

import "os/exec"

// StartWithin: see kept_linux.go. Here a command outlives a test that is killed.
func StartWithin(command *exec.Cmd) error { return command.Start() }
