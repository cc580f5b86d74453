package supervise

// ownProgram names the file that this process runs: the same one also after an
// upgrade has put another in its place.
func ownProgram() (string, error) { return "/proc/self/exe", nil }
