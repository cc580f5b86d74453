package sysfile

// OwnProgram is a path of the program file that this process runs. It leads to the same file even
// after an upgrade has replaced or removed the program.
func OwnProgram() (string, error) { return "/proc/self/exe", nil }
