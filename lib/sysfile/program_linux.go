package sysfile

// OwnProgram returns a path of this process's program that leads to the same file after an upgrade.
func OwnProgram() (string, error) { return "/proc/self/exe", nil }
