package helper

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// StartWithin starts a command that does not outlive this process, however that ends: a
// test that is killed cleans nothing up.
func StartWithin(command *exec.Cmd) error {
	return InKeptThread(func() error {
		if command.SysProcAttr == nil {
			command.SysProcAttr = new(syscall.SysProcAttr)
		}
		command.SysProcAttr.Pdeathsig = syscall.SIGKILL
		return command.Start()
	})
}

// InKeptThread calls start in a thread that stays: the kernel takes the end of the thread
// that has started a process for the death of its parent (PR_SET_PDEATHSIG).
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
