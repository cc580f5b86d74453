package process

import (
	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// CallSupervisor renames this process, so that others recognise that it forwards signals to its descendants
// (proc_pid_comm(5)). CallSupervisor avoids os.WriteFile, for which the runtime would set up its poller.
func CallSupervisor() error {
	fd, err := sysfile.Open("/proc/self/comm", unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = sysfile.Write(fd, []byte(supervisorName))
	return err
}
