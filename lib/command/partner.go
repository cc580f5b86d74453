package command

import (
	"os"
	"path/filepath"
	"syscall"

	"adlock/lib/exit"
)

// The programs that the helper hands over to. What they link would make it
// several times as large, and slower to start, for every script.
const (
	Locksmith = "adlock-locksmith" // stores beyond this machine
	Reporter  = "adlock-report"    // the verbs that tell people what is and what was
)

// Become replaces this process by a partner program that is installed beside
// it, else by the one on PATH, with the verb and its arguments. It returns only
// with an error: 69 where the program is missing; need says what it is for. It
// keeps the name that it was called by, for its help and for ps(1).
func Become(partner, need, verb string, args []string) error {
	path, err := findPartner(partner, need)
	if err != nil {
		return err
	}
	err = syscall.Exec(path, append([]string{os.Args[0], verb}, args...), os.Environ())
	return &exit.Error{Code: exit.Unavailable, Object: path, Err: err}
}

func findPartner(partner, need string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), partner); isProgram(beside) {
			return beside, nil
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if path := filepath.Join(dir, partner); filepath.IsAbs(path) && isProgram(path) {
			return path, nil
		}
	}
	return "", exit.New(exit.Unavailable, partner, "is not installed: it is needed "+need)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
