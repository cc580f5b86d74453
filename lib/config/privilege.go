package config

import (
	"os"

	"adlock/lib/fault"
)

// CheckPrivilege refuses to run with more rights than the caller's (77). HOME and the ADLOCK_
// variables come from the caller; they name the lock directory, and so the processes that would be
// ended, and the gate would run any program. A wrapper must first become the other user completely
// (setresuid(2)), and set the environment.
func CheckPrivilege() error {
	if os.Getuid() == os.Geteuid() && os.Getgid() == os.Getegid() {
		return nil
	}
	return fault.New(fault.NotPermitted, "adlock", "does not run set-user-ID or set-group-ID")
}
