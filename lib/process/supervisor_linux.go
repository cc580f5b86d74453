package process

import "os"

// CallSupervisor lets others know that this process passes signals on to its
// descendants (proc_pid_comm(5)).
func CallSupervisor() error { return os.WriteFile("/proc/self/comm", []byte(supervisorName), 0) }
