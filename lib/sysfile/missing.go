package sysfile

import (
	"errors"
	"io/fs"
)

// IgnoreMissing is nil if a file was not there.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
