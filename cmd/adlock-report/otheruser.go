// The files otheruser*.go let root read files of another user with that user's rights and no more. Whatever lies
// in a user's directory may be hostile: a link to a file of root, a pipe, a file system that never answers.
//
// A thread of this process with the user's rights to files (setfsuid(2)) does the reading. A process of that user
// never does: the user could stop or trace it, and read its environment. Whether a process may be signalled or traced
// depends on its real and effective user, and these stay root.

package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

type otherUser struct {
	Name     string // from passwd(5), or the number of a user without a name of its own there
	UID, GID int
	Groups   []int  // besides GID
	Home     string // an absolute path; "": none
}

// usersIn reads files as passwd(5) and group(5) describe them. If two users have the same number, the first one
// counts. Lines without a valid user, such as those of NIS, are skipped.
func usersIn(passwd, group string) ([]otherUser, error) {
	text, err := os.ReadFile(passwd)
	if err != nil {
		return nil, err
	}
	members, err := os.ReadFile(group)
	if err != nil {
		return nil, err
	}
	groups := groupsByMember(string(members))
	var users []otherUser
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) < 7 {
			continue
		}
		uid, gid := idNumber(f[2]), idNumber(f[3])
		if uid < 0 || gid < 0 || slices.ContainsFunc(users, func(u otherUser) bool { return u.UID == uid }) {
			continue
		}
		u := otherUser{Name: f[0], UID: uid, GID: gid, Groups: groups[f[0]]}
		if slices.ContainsFunc(users, func(other otherUser) bool { return other.Name == u.Name }) {
			u.Name = strconv.Itoa(uid)
		}
		if strings.HasPrefix(f[5], "/") {
			u.Home = f[5]
		}
		users = append(users, u)
	}
	return users, nil
}

// idNumber returns -1 for a text that is no number, and for the largest number, which means "no change" (setfsuid(2)).
func idNumber(text string) int {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 1<<32-1 {
		return -1
	}
	return int(n)
}

func groupsByMember(text string) map[string][]int {
	groups := map[string][]int{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) != 4 || idNumber(f[2]) < 0 {
			continue
		}
		for member := range strings.SplitSeq(f[3], ",") {
			groups[member] = append(groups[member], idNumber(f[2]))
		}
	}
	return groups
}
