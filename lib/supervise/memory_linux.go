package supervise

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// inMemory makes an unnamed file in memory (memfd_create(2), Linux 3.17). A system that forbids
// programs in such files (vm.memfd_noexec=2) requires MFD_NOEXEC_SEAL, which Linux 6.3 introduced.
func inMemory(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
