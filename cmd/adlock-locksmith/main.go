// Command adlock-locksmith(1) holds locks in a store. adlock, adlock-report and adlock.sh start it.
package main

import (
	"os"
	"path/filepath"

	_ "adlock/cmd/adlock-locksmith/early" // must be initialised before all others
	"adlock/lib/config"
	"adlock/lib/hold"
	"adlock/lib/run"
)

const storeNote = `A store is etcd://HOST:PORT[,HOST:PORT...]/PREFIX or ftp://USER@HOST[:PORT]/DIR.
What adlock_get and adlock_release run where ADLOCK_STORE is set is not listed.`

func main() {
	program := config.Program{
		Name: filepath.Base(os.Args[0]), Does: "locks in a store beyond this machine", Notes: storeNote,
		Verbs: []config.Verb{
			run.Verb(open),
			run.Shell(open),
			hold.Verb(keep),
			{Name: "lease", Owned: true, Run: takeLease},
			{Name: "holder", Owned: true, Run: heldUntil},
			{Name: "release", Run: release},
			{Name: "age", Run: age},
			{Name: "list", Run: list},
			{Name: "try", Run: try},
			{Name: "forget", Run: forget},
			{Name: "clear", Run: clear},
		},
	}
	os.Exit(program.Main(os.Args[1:]))
}
