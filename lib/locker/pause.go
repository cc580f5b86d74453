package locker

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

// PauseFile holds the pause of the host, for maintenance. The file belongs to root and has mode 0644. Tests set the path.
var PauseFile = "/var/lib/adlock.pause"

// HostPause returns the pause of the host. It returns an error if a user other than root may write the file,
// or if the file cannot be read or parsed: as root may have intended a pause, the newcomer must neither run
// nor be denied without a message. For a process that may not search the directory there is no pause.
func HostPause() (policy.Pause, error) {
	fd, err := sysfile.Open(PauseFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && !isPauseSeen() {
		return policy.Pause{}, nil
	}
	if err != nil {
		return policy.Pause{}, refusedPause(err.Error())
	}
	file := os.NewFile(uintptr(fd), PauseFile)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Uid != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o022 != 0 {
		return policy.Pause{}, refusedPause("must be a regular file of root that no other user may write")
	}
	content, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return policy.Pause{}, refusedPause(err.Error())
	}
	p, err := record.ParsePause(content)
	if err != nil {
		return policy.Pause{}, refusedPause("does not say how long the host is paused: " + err.Error())
	}
	view := p.Policy()
	view.Host = true
	return view, nil
}

func isPauseSeen() bool {
	_, err := os.Lstat(PauseFile)
	return err == nil
}

func refusedPause(why string) error {
	return fault.New(fault.NotPermitted, PauseFile, why+"; as root: adlock resume --all")
}
