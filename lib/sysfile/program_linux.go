package sysfile

// OwnProgram is a path of this process's program, which leads to the same file after an upgrade.
func OwnProgram() (string, error) { return "/proc/self/exe", nil }
