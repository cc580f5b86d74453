//go:build !linux

package main

import (
	"adlock/lib/fault"
	"adlock/lib/process"
)

// startAgent returns an error: outside Linux, no process can open the pipes of another one.
func startAgent(process.Identity) (string, error) {
	return "", fault.New(fault.Unavailable, "agent", "is offered on Linux only")
}

// agentMain does nothing: no process starts an agent outside Linux.
func agentMain(answerer) {}
