package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/policy"
	"adlock/lib/supervise"
	"adlock/lib/sysfile"
	"adlock/lib/way"
)

var mkatomicVerb = config.Verb{
	Name: "mkatomic", Does: "make FILE of standard input, or of what COMMAND prints if it succeeds: whole or not at all, and durable",
	Args:    "FILE [-- COMMAND [ARG...]]",
	Options: func() []config.Option { return mkatomicOptions(new(bool)) }, Run: mkatomic,
}

func mkatomicOptions(replace *bool) []config.Option {
	return []config.Option{
		{Name: "replace", Help: "also where there is a FILE already (else: exit 75), keeping its mode, and its owner where permitted; a link stays, and what it leads to is replaced", Set: config.Toggle(replace)},
	}
}

func mkatomic(args []string) (int, error) {
	var replace bool
	words, err := config.Parse(mkatomicOptions(&replace), args)
	if err != nil {
		return 0, err
	}
	switch {
	case len(words) == 0 || words[0] == "":
		return 0, fault.New(fault.Usage, "mkatomic", "wants one FILE")
	case len(words) > 1 && words[1] != "--", len(words) == 2:
		return 0, fault.New(fault.Usage, "mkatomic", "wants one FILE, and before a COMMAND a --")
	}
	find := way.Plain
	if replace {
		find = way.Follow
	}
	file, err := find(words[0])
	if err != nil {
		return 0, created(words[0], err)
	}
	if len(words) == 1 {
		return 0, makeOfInput(file, replace)
	}
	return makeOfOutput(file, replace, words[2:])
}

// makeOfInput makes the file from standard input. At HUP, INT or TERM it removes the temporary file and dies.
func makeOfInput(file string, replace bool) error {
	fault.OnQuit()
	if sysfile.WasClosed(0) {
		return &fault.Error{Kind: fault.Usage, Object: "standard input", Err: unix.EBADF}
	}
	ended := sysfile.CatchEnds() // before there is a temporary file to leave behind
	pending, err := begin(file, replace)
	if err != nil {
		return err
	}
	defer pending.Cleanup()
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(pending, os.Stdin)
		copied <- err
	}()
	select {
	case sig := <-ended:
		_ = pending.Cleanup() // at worst the temporary file stays
		sysfile.DieOf(sig.(unix.Signal))
	case err = <-copied:
	}
	if err != nil {
		return fault.Wrap(file, err)
	}
	return finish(pending, file, replace)
}

// makeOfOutput makes the file from what the command prints. If the command fails or is signalled to end, the file
// stays as it is, and this process ends as the command did (by TERM if the command exited with 0).
func makeOfOutput(file string, replace bool, command []string) (int, error) {
	supervise.LeaveSignals()
	path, err := supervise.Find(command[0])
	if err != nil {
		return 0, err
	}
	var pending *renameio.PendingFile
	job, err := supervise.Prepare(supervise.Job{
		Command: command[0], Path: path, Args: command, Env: os.Environ(), Pause: policy.DefaultPause,
		Output: func() (_ io.Writer, err error) {
			pending, err = begin(file, replace)
			return pending, err
		},
	})
	if err != nil {
		return 0, fault.Wrap(command[0], err)
	}
	result, err := job.Run()
	if err == nil && result.Status == 0 && !result.Ended {
		defer pending.Cleanup()
		return 0, finish(pending, file, replace)
	}
	if pending != nil {
		_ = pending.Cleanup() // at worst the temporary file stays
	}
	if err != nil {
		return 0, fault.Wrap(file, err)
	}
	if result.Status == 0 {
		sysfile.DieOf(unix.SIGTERM) // the command was signalled to end, but exited with 0
	}
	result.DieAlike()
	return result.Status, nil
}

func begin(file string, replace bool) (*renameio.PendingFile, error) {
	// Checking first saves reading a long input for nothing. In the end link(2) decides, unless replace is set.
	there, err := os.Lstat(file)
	switch {
	case err == nil && !replace:
		return nil, denied(file)
	case err == nil && !there.Mode().IsRegular(): // rename(2) would remove a device: root's /dev/null
		return nil, fault.New(fault.CannotCreate, file, "is not a regular file")
	}
	pending, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)),
		renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	if err != nil {
		return nil, created(file, err)
	}
	if there != nil {
		keepOwner(pending.File, there)
		if err := keepACL(pending.File, file); err != nil {
			return nil, errors.Join(created(file, err), pending.Cleanup())
		}
	}
	return pending, nil
}

// keepOwner gives the new file the owner and group of the old one; if that is not permitted, only the group.
func keepOwner(file *os.File, there fs.FileInfo) {
	if was, known := there.Sys().(*syscall.Stat_t); known && file.Chown(int(was.Uid), int(was.Gid)) != nil {
		_ = file.Chown(-1, int(was.Gid))
	}
}

// finish syncs the file, puts it in place and syncs its directory. Without replace, it fails if the name exists.
func finish(pending *renameio.PendingFile, file string, replace bool) (err error) {
	if replace {
		err = pending.CloseAtomicallyReplace()
	} else if err = pending.Sync(); err == nil {
		err = os.Link(pending.Name(), file)
	}
	if errors.Is(err, fs.ErrExist) {
		return denied(file)
	}
	if err != nil {
		return created(file, err)
	}
	return fault.Wrap(filepath.Dir(file), syncDir(filepath.Dir(file)))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func denied(file string) error { return fault.New(fault.Denied, file, "exists already") }

func created(file string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &fault.Error{Kind: fault.CannotCreate, Object: file, Err: err}
	}
	return fault.Wrap(file, err)
}
