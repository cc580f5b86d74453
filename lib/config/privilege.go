package config

import (
	"os"

	"adlock/lib/fault"
)

// CheckPrivilege refuses to run with more rights than the caller's (77). HOME and the ADLOCK_ variables
// come from the caller and name the lock directory, so the processes that would be ended; the gate would
// run any program. A wrapper must first become the other user (setresuid(2)), and set the environment.
func CheckPrivilege() error {
	if os.Getuid() == os.Geteuid() && os.Getgid() == os.Getegid() {
		return nil
	}
	return fault.New(fault.NotPermitted, "adlock", "does not run set-user-ID or set-group-ID")
}
