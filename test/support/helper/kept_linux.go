package helper

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// StartWithin starts a command that ends with this process in every case, as a killed test cleans
// nothing up.
func StartWithin(command *exec.Cmd) error {
	return InKeptThread(func() error {
		if command.SysProcAttr == nil {
			command.SysProcAttr = new(syscall.SysProcAttr)
		}
		command.SysProcAttr.Pdeathsig = syscall.SIGKILL
		return command.Start()
	})
}

// InKeptThread calls start in a thread that stays: for the kernel, the end of the thread that
// started a process is the death of the parent (PR_SET_PDEATHSIG).
func InKeptThread(start func() error) error {
	started := make(chan error)
	keptThread() <- func() { started <- start() }
	return <-started
}

var keptThread = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})
