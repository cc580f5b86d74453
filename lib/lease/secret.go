package lease

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"adlock/lib/fault"
)

// Password returns the password in the file that the variable names; said is false if none is named.
func Password(variable string) (password string, said bool, err error) {
	file := os.Getenv(variable)
	if file == "" {
		return "", false, nil
	}
	text, err := ReadSecret(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = Unreadable(file, variable, err)
	}
	return strings.TrimRight(text, "\r\n"), true, err
}

// ReadSecret returns the text of a file to which only its owner may have access.
func ReadSecret(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fault.Wrap(file, err)
	}
	if info.IsDir() {
		return "", fault.New(fault.Usage, file, "is a directory: want a file with the password")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fault.New(fault.NotPermitted, file, "holds a password and may be read by others: chmod 600")
	}
	text, err := os.ReadFile(file)
	return string(text), fault.Wrap(file, err)
}
