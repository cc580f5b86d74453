package config

import (
	"os"
	"slices"
	"strings"

	"adlock/lib/fault"
)

// NoHost returns what is wrong with a lock in a store if no host is set, and the cure.
func NoHost(store string) (wrong, cure string) {
	return "the host is each machine's own name, so that each has a lock of its own in " + store,
		"say --host NAME (ADLOCK_HOST), the same on all machines"
}

// toldHosts, in the lock directory, lists the stores about which TellNoHost has warned.
const toldHosts = "told.host"

// TellNoHost warns once for each store (each time if dir is missing or refused) that no host is set for its locks.
func TellNoHost(dir, store string) {
	told := toldIn(dir, toldHosts)
	known, _ := os.ReadFile(told) // the file does not exist before the first warning
	if slices.Contains(strings.Split(string(known), "\n"), store) {
		return
	}
	wrong, cure := NoHost(store)
	fault.Warn("a store without a host", wrong+"; "+cure)
	_ = os.WriteFile(told, append(known, store+"\n"...), 0o600) // if this fails, the warning is printed again
}
