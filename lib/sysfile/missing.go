package sysfile

import (
	"errors"
	"io/fs"
)

// IgnoreMissing returns err, but nil if the file does not exist.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
