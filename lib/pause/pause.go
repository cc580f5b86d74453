// Package pause reads the pause of the whole host, which root sets for maintenance.
package pause

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/policy"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// File holds the pause of the host. It belongs to root and has mode 0644. Tests change the path.
var File = "/var/lib/adlock.pause"

// Host is the pause of the host. It is an error if users other than root may write the file, or if
// it cannot be read or has another format: root may have intended a pause, so the newcomer must
// neither run nor be denied without a message. For a process that may not search the directory
// there is no pause.
func Host() (policy.Pause, error) {
	fd, err := sysfile.Open(File, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && !isSeen() {
		return policy.Pause{}, nil
	}
	if err != nil {
		return policy.Pause{}, refusal(err.Error())
	}
	file := os.NewFile(uintptr(fd), File)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Uid != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o022 != 0 {
		return policy.Pause{}, refusal("must be a regular file of root that no other user may write")
	}
	content, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return policy.Pause{}, refusal(err.Error())
	}
	p, err := record.ParsePause(content)
	if err != nil {
		return policy.Pause{}, refusal("does not say how long the host is paused: " + err.Error())
	}
	return p.Policy(), nil
}

func isSeen() bool {
	_, err := os.Lstat(File)
	return err == nil
}

func refusal(why string) error {
	return fault.New(fault.NotPermitted, File, why+"; as root: adlock resume --all")
}
