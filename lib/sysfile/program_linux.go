package sysfile

// OwnProgram names the file that this process runs: the same one also after an
// upgrade has put another in its place, or has removed it.
func OwnProgram() (string, error) { return "/proc/self/exe", nil }
