//go:build !linux

package need

func hearRest() {}
