package need

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that is executed soon. No process is forked meanwhile: it would have the
// file open for writing until its execve(2), and no process can execute such a file (ETXTBSY).
func WriteProgram(path string, content []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, mode)
}
