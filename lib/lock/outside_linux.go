package lock

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// isOutside tells whether files that seem to be uid's belong to somebody who has
// no id in this user namespace (user_namespaces(7)): to the machine's root, in a
// container of the user's own.
func isOutside(uid uint32) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != strconv.Itoa(int(uid)) {
		return false
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(ids)) {
		var inside, outside, count uint64
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n != 3 || inside <= uint64(uid) && uint64(uid) < inside+count {
			return false
		}
	}
	return true
}
