package way

import (
	"os"
	"strconv"
	"strings"
)

// isOutside reports whether uid stands for all users that have no id in this user namespace (user_namespaces(7)),
// such as the machine's root in a rootless container. isOutside is false if /proc does not show that.
func isOutside(uid uint32) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != strconv.Itoa(int(uid)) {
		return false
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !mayHave(string(ids), uid)
}

// mayHave reports whether ids, the text of a uid_map, maps a user to uid, or has a line that cannot be parsed.
func mayHave(ids string, uid uint32) bool {
	for line := range strings.Lines(ids) { // first inside, first outside, how many
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return true
		}
		first, err := strconv.ParseUint(fields[0], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 64)
		if err != nil || err2 != nil || first <= uint64(uid) && uint64(uid) < first+count {
			return true
		}
	}
	return false
}
