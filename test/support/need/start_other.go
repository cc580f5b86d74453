//go:build !linux

package need

func resetIgnored() {}
