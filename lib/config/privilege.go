package config

import (
	"os"

	"adlock/lib/fault"
)

// CheckPrivilege refuses to go on with more rights than the caller has (77). In
// a set-user-ID program HOME and the ADLOCK_ variables are the caller's, and
// they say where the locks are and whom they condemn; the gate would run
// whatever its arguments name. A wrapper that means it becomes the user wholly
// (setresuid(2)) and sets its environment first.
func CheckPrivilege() error {
	if os.Getuid() == os.Geteuid() && os.Getgid() == os.Getegid() {
		return nil
	}
	return fault.New(fault.NotPermitted, "adlock", "does not run set-user-ID or set-group-ID")
}
