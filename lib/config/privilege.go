package config

import (
	"os"

	"adlock/lib/fault"
)

// CheckPrivilege returns an error (77) if this process has other rights than its caller (set-user-ID or
// set-group-ID). The caller sets HOME and the ADLOCK_ variables, which name the lock directory and so the processes
// to end, and could make supervise.Gate run any program. A wrapper must first become the other user (setresuid(2)).
func CheckPrivilege() error {
	if os.Getuid() == os.Geteuid() && os.Getgid() == os.Getegid() {
		return nil
	}
	return fault.New(fault.NotPermitted, "adlock", "does not run set-user-ID or set-group-ID")
}
