package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func (m *Machine) services() (all []Finding) {
	const what = "systemd"
	guarded := 0
	for _, path := range m.Services {
		file, err := os.ReadFile(path)
		text := string(file)
		if err != nil || !strings.Contains(text, "adlock run ") {
			continue
		}
		guarded++
		name := filepath.Base(path)
		if !strings.Contains(text, "\nKillMode=mixed\n") {
			all = append(all, warn(what, name+" has no KillMode=mixed: when it is stopped, its job gets each signal twice", "add it to [Service]"))
		}
		if !strings.Contains(text, "\nSuccessExitStatus=75") && !strings.Contains(text, " -E ") && !strings.Contains(text, "--exit-denied") {
			all = append(all, warn(what, name+" fails whenever its lock is taken", "add SuccessExitStatus=75 to [Service]"))
		}
	}
	if guarded > 0 && len(all) == 0 {
		all = []Finding{fine(what, "services that run a job under adlock: "+strconv.Itoa(guarded))}
	}
	return all
}
