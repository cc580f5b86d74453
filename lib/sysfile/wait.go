package sysfile

import "syscall"

// Wait waits until the child has ended, and reaps it. The error is ECHILD if pid is no child, or was reaped before.
func Wait(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	_, err := RetryN(func() (int, error) { return syscall.Wait4(pid, &status, 0, nil) })
	return status, err
}

// Reap reaps one child that has ended, without waiting; pid 0 if there is none.
func Reap() (pid int, status syscall.WaitStatus) {
	pid, err := RetryN(func() (int, error) { return syscall.Wait4(-1, &status, syscall.WNOHANG, nil) })
	if err != nil {
		return 0, 0
	}
	return pid, status
}
