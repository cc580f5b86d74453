package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/exit"
)

func mkatomicVerb() *cli.Command {
	return app.Verb("mkatomic", "make of standard input FILE, whole or not at all, and durable", "FILE",
		[]cli.Flag{&cli.BoolFlag{Name: "replace", Usage: "also where there is a FILE already, keeping its mode (else: exit 75)"}},
		func(c *cli.Context) error {
			if c.NArg() != 1 || c.Args().First() == "" {
				return exit.New(exit.Usage, "mkatomic", "wants one FILE")
			}
			return mkatomic(c.Args().First(), c.Bool("replace"), os.Stdin)
		})
}

// mkatomic writes content beside file and puts it in place once it is on the
// disk; the directory's own entry is synced too.
func mkatomic(file string, replace bool, content io.Reader) error {
	// Told early, so that a long input is not read for nothing; where nothing may
	// be replaced link(2) decides.
	if info, err := os.Lstat(file); err == nil {
		if !replace {
			return denied(file)
		}
		if !replaceable(info.Mode()) {
			return exit.New(exit.CannotCreate, file, "is not a regular file")
		}
	}
	pending, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)),
		renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	if err != nil {
		return created(file, err)
	}
	defer pending.Cleanup()
	if _, err := io.Copy(pending, content); err != nil {
		return exit.Wrap(file, err)
	}
	if replace {
		err = pending.CloseAtomicallyReplace()
	} else {
		err = linkDurably(pending, file)
	}
	if errors.Is(err, fs.ErrExist) {
		return denied(file)
	}
	if err != nil {
		return created(file, err)
	}
	return exit.Wrap(filepath.Dir(file), syncDir(filepath.Dir(file)))
}

// replaceable tells whether a file of this mode may make way, as a link itself
// does for mv(1). rename(2) would also remove a device: root's /dev/null.
func replaceable(mode fs.FileMode) bool {
	return mode.IsRegular() || mode&fs.ModeSymlink != 0
}

func linkDurably(pending *renameio.PendingFile, file string) error {
	if err := pending.Sync(); err != nil {
		return err
	}
	return os.Link(pending.Name(), file)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func denied(file string) error { return exit.New(exit.Denied, file, "exists already") }

func created(file string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &exit.Error{Code: exit.CannotCreate, Object: file, Err: err}
	}
	return exit.Wrap(file, err)
}
