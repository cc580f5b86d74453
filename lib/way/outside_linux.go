package way

import (
	"os"
	"strconv"
	"strings"
)

// isOutside reports whether uid stands for users without an id in this user namespace (user_namespaces(7)):
// in a rootless container, the machine's root.
func isOutside(uid uint32) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != strconv.Itoa(int(uid)) {
		return false
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !mayHave(string(ids), uid)
}

// mayHave reports whether ids, the text of a uid_map, has an id for uid, or a line that cannot be parsed.
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
