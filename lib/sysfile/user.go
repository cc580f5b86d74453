package sysfile

import (
	"os"
	"strconv"
	"strings"
)

// UserName returns the name of a user of this machine, else the number.
func UserName(uid int) string {
	if entry := passwd(uid); entry != nil {
		return entry[0]
	}
	return strconv.Itoa(uid)
}

// HomeOf returns the home of a user of this machine; known is false if passwd(5) has no such user.
func HomeOf(uid int) (home string, known bool) {
	if entry := passwd(uid); len(entry) > 5 {
		return entry[5], true
	}
	return "", false
}

// AsUser returns, for messages, the command by which root runs adlock as that user.
func AsUser(uid int) string {
	name := UserName(uid)
	if _, err := strconv.Atoi(name); err == nil {
		name = "'#" + name + "'"
	}
	return "sudo -u " + name + " adlock ..."
}

func passwd(uid int) []string {
	number := strconv.Itoa(uid)
	text, _ := os.ReadFile("/etc/passwd") // without it, no user is known
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == number {
			return f
		}
	}
	return nil
}
