package supervise

import (
	"bytes"
	"cmp"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
)

const defaultPath = "/bin:/usr/bin" // searched if PATH is not set, as by execvp(3)

// Find returns the file of a command, and searches PATH like execvp(3) for a command without a slash. The
// error is a *fault.Error: NoCommand if there is no such file, NotRunnable if the file may not be executed.
func Find(command string) (string, error) {
	if strings.Contains(command, "/") {
		return command, cannotRun(command, executable(command))
	}
	var best error = syscall.ENOENT
	for _, dir := range searchPath() {
		candidate := cmp.Or(dir, ".") + "/" + command
		err := executable(candidate)
		if err == nil {
			return candidate, nil
		}
		// As in a shell, a directory that may not be searched counts as empty.
		if err == syscall.EACCES && isFile(candidate) {
			best = err // as in execvp(3), a later directory may have a file that can be executed
		}
	}
	return "", cannotRun(command, best)
}

func searchPath() []string {
	path, set := os.LookupEnv("PATH")
	if !set {
		path = defaultPath
	}
	return strings.Split(path, ":")
}

// executable returns an error if this process may not execute the file: its effective ids count (execve(2)).
func executable(file string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS); err != nil {
		return err
	}
	if !isFile(file) {
		return syscall.EACCES
	}
	return nil
}

func isFile(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.IsDir()
}

// execute runs a file through exec. If the kernel does not know its format (a script without a line
// #!), /bin/sh runs it, as in a shell (POSIX.1-2017, XCU 2.9.1) and in flock(1), which uses
// execvp(3). A file that is no text is not given to /bin/sh.
func execute(path string, args []string, exec func(path string, args []string) error) error {
	err := exec(path, args)
	if err == syscall.ENOEXEC && IsText(path) {
		return exec("/bin/sh", append([]string{"/bin/sh", path}, args[1:]...))
	}
	return err
}

// IsText reports whether the first line, or its first 256 bytes, has no null byte: shells check that before they run
// a file as a script. IsText is false if the file is empty or cannot be read.
func IsText(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 256)
	n, err := file.Read(head)
	line, _, _ := bytes.Cut(head[:n], []byte{'\n'})
	return err == nil && bytes.IndexByte(line, 0) < 0
}

func cannotRun(command string, err error) error {
	switch err {
	case nil:
		return nil
	case syscall.ENOENT, syscall.ENOTDIR:
		return &fault.Error{Kind: fault.NoCommand, Object: command, Err: err}
	}
	return &fault.Error{Kind: fault.NotRunnable, Object: command, Err: err}
}
