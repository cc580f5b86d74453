package sysfile

import "syscall"

// Wait waits until the child has ended, and reaps it. The error is ECHILD if the process is no
// child of this process or was reaped already.
func Wait(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	_, err := RetryN(func() (int, error) { return syscall.Wait4(pid, &status, 0, nil) })
	return status, err
}

// Reap reaps any child that has ended, without waiting. The pid is 0 if there is none now, or no
// child at all.
func Reap() (pid int, status syscall.WaitStatus) {
	pid, err := RetryN(func() (int, error) { return syscall.Wait4(-1, &status, syscall.WNOHANG, nil) })
	if err != nil {
		return 0, 0
	}
	return pid, status
}
