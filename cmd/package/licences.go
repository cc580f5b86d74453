package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenceFiles are what modules call the files that have to go with what is made of them.
var licenceFiles = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([-.].*)?$`)

// licences are the texts under which others have written what the programs are linked
// with: they ask for a copy beside each program.
func (o order) licences() ([]byte, error) {
	modules, err := o.modules()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, module := range modules {
		name := module.Path + " " + module.Version
		fmt.Fprintf(&out, "%s\n%s\n", name, strings.Repeat("=", len(name)))
		if err := appendLicences(&out, module.Dir); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Bytes(), nil
}

func appendLicences(out *bytes.Buffer, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		if !licenceFiles.MatchString(entry.Name()) || entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(out, "\n%s\n\n", bytes.TrimSpace(text))
	}
	if !found {
		return errors.New("has no licence")
	}
	return nil
}

// source is where the source of a module is on this machine.
type source struct{ Path, Version, Dir string }

// modules are those of all programs, Go's own library first, without repetition.
func (o order) modules() ([]source, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	programs, err := o.programs()
	if err != nil {
		return nil, err
	}
	list := []source{{"Go", strings.TrimPrefix(programs[0].info.GoVersion, "go"), strings.TrimSpace(string(root))}}
	var names []string
	for _, p := range programs {
		for _, module := range p.info.Deps {
			names = append(names, module.Path+"@"+module.Version)
		}
	}
	slices.Sort(names)
	command := exec.Command("go", append([]string{"mod", "download", "-json"}, slices.Compact(names)...)...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var module source
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, module)
	}
}
