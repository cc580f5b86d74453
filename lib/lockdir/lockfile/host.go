package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// HostFile returns the name of the file in a lock directory that holds the host of the machine with that id.
func HostFile(machine string) string { return "host." + machine }

// unkept, in a host file, means the present node name: machines may share the file system, or canKeep refused the name.
const unkept = "*"

// Host returns $ADLOCK_HOST, else the node name that this machine recorded when it first locked in the directory
// of the store (config.DirOf; protocol.md, 1). If none is recorded, or with an error, the host is the present
// node name; "" if that is not known. With keep, as for a newcomer, Host makes the directory and records the name.
func Host(store string, keep bool) (string, error) {
	if host := os.Getenv("ADLOCK_HOST"); host != "" {
		return host, nil
	}
	node, err := sysfile.NodeName()
	if err != nil {
		return "", fault.Wrap("node name", err)
	}
	path := ""
	if !config.IsRemote(store) {
		path, _ = config.DirOf(store) // a verb that needs the directory reports the error
	}
	kept, err := keptHost(path, node, keep)
	if kept == "" || kept == unkept {
		kept = node
	}
	return kept, err
}

// Renamed returns the Host and the current node name; the two differ if this machine was renamed after it
// first locked in the directory. Both are "" if that is not known, or if a person has set the host.
func Renamed(store string) (host, node string) {
	host, err := Host(store, false)
	node, _ = sysfile.NodeName() // if there is none, Host has failed
	if err != nil || os.Getenv("ADLOCK_HOST") != "" {
		return "", ""
	}
	return host, node
}

func keptHost(path, node string, keep bool) (string, error) {
	if err := process.Passing(); err != nil {
		return "", err
	}
	machine := process.Here().Machine
	if path == "" || len(machine) != 32 || strings.Trim(machine, "0123456789abcdef") != "" { // machine-id(5)
		return "", nil
	}
	file := HostFile(machine)
	if host := glance(path + "/" + file); host != "" {
		return host, nil
	}
	dir, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) && keep {
		if dir, err = Create(path); err != nil {
			return "", nil // taking the lock reports the error
		}
	}
	switch kind := fault.KindOf(err); {
	case err == nil:
	case kind == fault.NotPermitted, kind == fault.CannotCreate: // the directory is missing or refused
		return "", nil
	default:
		return "", err
	}
	defer dir.Close()
	host, err := dir.host(file)
	if errors.Is(err, fs.ErrNotExist) {
		if keep && dir.keepHost(file, node) {
			return dir.host(file) // another process may have made it first
		}
		return "", nil
	}
	return host, err
}

// glance reads the host's file by its path, because opening the directory here too would slow down each start.
// It returns "" if the file is missing or not trusted: the caller then has to open the directory.
func glance(path string) string {
	fd, err := sysfile.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if sysfile.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || !sysfile.IsOurs(&st) {
		return ""
	}
	var text [256]byte
	n, err := sysfile.Read(fd, text[:])
	if err != nil {
		return ""
	}
	return parseHost(text[:n])
}

func (d *Dir) host(file string) (string, error) {
	f, err := d.openFile(file, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := f.read()
	if err != nil {
		return "", err
	}
	host := parseHost(content)
	if host == "" {
		return "", fault.New(fault.IO, d.Path(file), "is damaged: its first line is to be HOST in the names of this machine's locks here")
	}
	return host, nil
}

func parseHost(content []byte) string {
	host, _, whole := strings.Cut(string(content), "\n") // the shell reads the first line too
	if !whole || host != unkept && !canKeep(host) {
		return ""
	}
	return host
}

func canKeep(host string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	return host != "" && len(host) < 256 && strings.Trim(host, letters+"._-") == ""
}

// keepHost records the node name or unkept, unless another process was faster; it reports whether the file exists now.
// If it cannot be made, no lock can be made either, and the attempt to take one reports why. The content is
// synced before the file gets its name, so that no loss of power leaves an empty file.
func (d *Dir) keepHost(file, node string) bool {
	if !canKeep(node) || !isLocal(d.fd) {
		node = unkept
	}
	temp, err := d.TempFile([]byte(node + "\n"))
	if err != nil {
		return false
	}
	defer temp.Discard()
	if sysfile.Retry(func() error { return unix.Fsync(temp.fd) }) != nil {
		return false
	}
	err = temp.Link(file)
	return err == nil || errors.Is(err, fs.ErrExist)
}
