//go:build !linux

package agent

import (
	"adlock/lib/fault"
	"adlock/lib/process"
)

// Start returns an error: outside Linux, no process can open the pipes of another one.
func Start(process.Identity) (string, error) {
	return "", fault.New(fault.Unavailable, "agent", "is offered on Linux only")
}

// Main does nothing: no process starts an agent outside Linux.
func Main(Answerer) {}
