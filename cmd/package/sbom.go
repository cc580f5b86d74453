package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// bom is a bill of materials in CycloneDX 1.5 (cyclonedx.org/docs/1.5/json): each program,
// and the modules that its build information names.
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// bill writes the bill of materials of the programs in the tree.
func (o order) bill(string) error {
	whole := component{Type: "application", Ref: "adlock", Name: "adlock", Version: o.version}
	b := bom{Schema: "http://cyclonedx.org/schema/bom-1.5.schema.json", Format: "CycloneDX", Spec: "1.5", Version: 1,
		Metadata: metadata{o.when.Format("2006-01-02T15:04:05Z"), whole}}
	programs, err := o.programs()
	if err != nil {
		return err
	}
	parts := dependency{Ref: whole.Ref}
	for _, p := range programs {
		parts.DependsOn = append(parts.DependsOn, b.add(p, o.version))
	}
	b.Dependencies = append(b.Dependencies, parts)
	slices.SortFunc(b.Components, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	b.Components = slices.CompactFunc(b.Components, func(a, b component) bool { return a.Ref == b.Ref })
	b.Serial = b.serial()
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return o.result(fmt.Sprintf("adlock_%s_%s.cdx.json", o.version, o.arch), func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
}

// program is one of those in the tree, and what it says of its making.
type program struct {
	name string
	sum  [sha256.Size]byte
	info *buildinfo.BuildInfo
}

// programs are those in the tree. Without any there is nothing to be packed.
func (o order) programs() ([]program, error) {
	paths, err := filepath.Glob(filepath.Join(o.tree, "usr/bin/*"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(err, errors.New(o.tree+": has no programs"))
	}
	var list []program
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.Read(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, program{filepath.Base(path), sha256.Sum256(text), info})
	}
	return list, nil
}

// add adds a program and its modules, the standard library among them.
func (b *bom) add(p program, version string) (ref string) {
	made := component{Type: "application", Ref: "/usr/bin/" + p.name, Name: p.name, Version: version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(p.sum[:])}}}
	b.Components = append(b.Components, made)
	uses := dependency{Ref: made.Ref}
	for _, module := range append(slices.Clone(p.info.Deps), &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(p.info.GoVersion, "go")}) {
		if module.Replace != nil {
			module = module.Replace
		}
		purl := "pkg:golang/" + module.Path + "@" + module.Version
		b.Components = append(b.Components, component{Type: "library", Ref: purl, Name: module.Path, Version: module.Version, PURL: purl})
		uses.DependsOn = append(uses.DependsOn, purl)
	}
	b.Dependencies = append(b.Dependencies, uses)
	return made.Ref
}

// serial is a UUID (RFC 9562, version 8) made of what the bill says, so that the same
// programs get the same one.
func (b *bom) serial() string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // strings and numbers can be written
	}
	sum := sha256.Sum256(text)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
