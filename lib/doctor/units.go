package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	killsMixed     = regexp.MustCompile(`(?m)^[ \t]*KillMode[ \t]*=[ \t]*mixed\s*$`)
	succeedsDenied = regexp.MustCompile(`(?m)^[ \t]*SuccessExitStatus[ \t]*=(.*[ \t])?(75|TEMPFAIL)\b|` +
		`^[^#;\n]*ADLOCK_EXIT_DENIED=|adlock run[ \t]+(-{0,2}[^\s-]\S*[ \t]+|\\\n[ \t]*)*(-E|--exit-denied)`)
)

func (m *Machine) services() (all []Finding) {
	const what = "systemd"
	guarded := 0
	for _, path := range m.Services {
		text := unitWithDropIns(path)
		if !strings.Contains(text, "adlock run ") {
			continue
		}
		guarded++
		name := filepath.Base(path)
		if !killsMixed.MatchString(text) {
			all = append(all, warn(what, name+" has no KillMode=mixed: when it is stopped, its job gets each signal twice", "add it to [Service]"))
		}
		if !succeedsDenied.MatchString(text) {
			all = append(all, warn(what, name+" fails whenever its lock is taken", "add SuccessExitStatus=75 to [Service]"))
		}
	}
	if guarded > 0 && len(all) == 0 {
		all = []Finding{fine(what, "services that run a job under adlock: "+strconv.Itoa(guarded))}
	}
	return all
}

func unitWithDropIns(path string) string {
	paths := []string{path}
	entries, _ := os.ReadDir(path + ".d") // most units have none
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".conf" {
			paths = append(paths, filepath.Join(path+".d", e.Name()))
		}
	}
	text := "\n"
	for _, path := range paths {
		file, _ := os.ReadFile(path) // "" if the file is gone
		text += string(file) + "\n"
	}
	return text
}
