package process

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// between is argv[0] of the intermediate process, by which OrphanMain recognises it: no program file has that name.
const between = "adlock: orphan"

// StartOrphan starts this program again as an orphan, in a session of its own. An orphan outlives the process that
// started it, and leaves the job of that process. The orphan gets the arguments args, its name first, the directory
// dir ("": the working directory) and the environment env. If fd is not negative, it becomes descriptor 3. Descriptors
// 0, 1 and 2 are /dev/null, and no other descriptor is passed on.
//
// An intermediate process starts the orphan, and has exited before StartOrphan returns. If this process is the
// subreaper of its job (package supervise), it adopts the orphan, which then stays a part of the job.
func StartOrphan(args []string, dir string, env []string, fd int) error {
	null, err := sysfile.Open("/dev/null", unix.O_RDWR)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	self, err := sysfile.OwnProgram()
	if err != nil {
		return err
	}
	files := []uintptr{uintptr(null), uintptr(null), uintptr(null)}
	if fd >= 0 {
		files = append(files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(self, append([]string{between, strconv.Itoa(len(files))}, args...), &syscall.ProcAttr{
		Dir: dir, Env: env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	status, err := sysfile.Wait(pid)
	if err == unix.ECHILD {
		return nil // package supervise was faster: it reaps all children
	}
	if err == nil && status.ExitStatus() != fault.StatusOK {
		err = fault.New(fault.System, os.Args[0], "cannot start itself")
	}
	return err
}

// OrphanMain must be called at the beginning of main. In the intermediate process it starts the orphan and never
// returns; in other processes it does nothing.
func OrphanMain() {
	if len(os.Args) > 2 && os.Args[0] == between {
		os.Exit(startBetween(os.Args[1], os.Args[2:]))
	}
}

// startBetween starts the orphan with the descriptors below kept. It returns the intermediate process's exit status.
func startBetween(kept string, args []string) int {
	count, err := strconv.Atoi(kept)
	if err != nil {
		return fault.StatusUsage
	}
	CloseInherited(count)
	files := make([]uintptr, count)
	for i := range files {
		files[i] = uintptr(i)
	}
	self, err := sysfile.OwnProgram()
	if err == nil {
		_, err = syscall.ForkExec(self, args, &syscall.ProcAttr{Env: os.Environ(), Files: files})
	}
	return fault.StatusOf(err)
}

// CloseInherited closes the inherited descriptors from least on: a reader at the other end of a script's
// pipe must not wait for an orphan. Descriptors with close-on-exec are this process's own, and stay open.
func CloseInherited(least int) {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < least {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
