package main

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// If a file system of another user does not answer, the thread that reads it may wait where no
// signal can end it (FUSE, once its server has read the request). A process with such a thread
// never exits, and its parent, cron or a person's shell, would wait for ever. So a child process
// reads the files of other users. If it may be unable to exit, it sends its status to the process that started it.

// childName is argv[0] of the child. No program file has this name, so no person starts the child by it.
const childName = "adlock: all users"

// parent is the pipe to the parent process; nil if this process is not the child.
var parent *os.File

// init locks the main goroutine to the main thread: the kernel kills the child when the thread that started it ends
// (Pdeathsig), and the main thread ends last.
func init() { runtime.LockOSThread() }

func childMain() {
	if os.Args[0] == childName && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		parent = os.NewFile(3, "the parent")
		unix.CloseOnExec(3)
	}
}

// continueInChild starts the child, and exits with its status or by its signal. In the child, it returns nil;
// in the parent it returns only with an error, if no child can be started.
func continueInChild() error {
	if parent != nil {
		return nil
	}
	self, err := sysfile.OwnProgram()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return fault.Wrap("pipe", err)
	}
	child := &exec.Cmd{
		Path: self, Args: append([]string{childName}, os.Args...),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{write},
		SysProcAttr: &unix.SysProcAttr{Pdeathsig: unix.SIGKILL},
	}
	if err := child.Start(); err != nil {
		return fault.Wrap(os.Args[0], err)
	}
	write.Close()
	status := make([]byte, 1)
	if n, _ := read.Read(status); n == 1 { // otherwise the child has exited, or will in a moment
		os.Exit(int(status[0]))
	}
	_ = child.Wait() // ProcessState has what the error says
	if ended, is := child.ProcessState.Sys().(syscall.WaitStatus); is && ended.Signaled() {
		sysfile.DieOf(ended.Signal())
	}
	os.Exit(child.ProcessState.ExitCode())
	return nil
}

// leave exits. If a thread may keep this process from exiting, leave first closes the standard descriptors, as their
// readers would wait, and reports the status to the parent.
func leave(status int) {
	if parent != nil && len(silent) > 0 {
		for fd := range 3 {
			_ = unix.Close(fd) // what was written has already been checked
		}
		_, _ = parent.Write([]byte{byte(status)}) // if the parent is gone, no process waits for the status
	}
	os.Exit(status)
}
