package process

import (
	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// CallSupervisor lets others know that this process passes signals on to its
// descendants (proc_pid_comm(5)). Not by os.WriteFile, for which the runtime sets its
// poller up.
func CallSupervisor() error {
	fd, err := sysfile.Open("/proc/self/comm", unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = sysfile.Write(fd, []byte(supervisorName))
	return err
}
