package sysfile

import (
	"os"
	"strconv"
	"strings"
)

// UserName is the name of a user of this machine, else the number.
func UserName(uid int) string {
	number := strconv.Itoa(uid)
	text, _ := os.ReadFile("/etc/passwd") // without it, the number is used
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == number {
			return f[0]
		}
	}
	return number
}
