package main

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2/files"
)

const docs = "/usr/share/doc/adlock/"

// packing is the making of one package's contents: those of the tree, but for what a
// package has in another form or place.
type packing struct {
	order
	deb  bool
	made string // the directory for files that are made here
	list files.Contents
}

func (o order) contents(format, made string) (files.Contents, error) {
	p := &packing{order: o, deb: format == "deb", made: made}
	if err := filepath.WalkDir(o.tree, p.add); err != nil {
		return nil, err
	}
	if err := p.put(docs+"copyright", []byte(copyright)); err != nil {
		return nil, err
	}
	others, err := o.licences()
	if err == nil {
		err = p.put(docs+"copyright.modules.gz", compressed(others))
	}
	if err != nil || !p.deb {
		return p.list, err
	}
	news, err := debianChangelog(o.changelog, o.maintainer, o.when)
	if err == nil {
		err = p.put(docs+"changelog.Debian.gz", compressed(news))
	}
	if err == nil {
		err = p.put("/usr/share/lintian/overrides/adlock", []byte(overrides))
	}
	return p.list, err
}

// add takes a file of the tree into the package.
func (p *packing) add(path string, entry fs.DirEntry, err error) error {
	if err != nil || entry.IsDir() {
		return err
	}
	to := strings.TrimPrefix(path, p.tree)
	switch {
	case to == docs+"LICENSE": // copyright has it
		return nil
	case to == docs+"CHANGELOG.md":
		return p.compress(path, docs+"changelog.gz")
	case strings.HasPrefix(to, "/usr/share/man/"):
		return p.compress(path, to+".gz")
	case p.deb: // where Debian's zsh looks
		to = strings.Replace(to, "/zsh/site-functions/", "/zsh/vendor-completions/", 1)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	kind := files.TypeFile
	if strings.HasPrefix(to, "/etc/") {
		kind = files.TypeConfigNoReplace
	}
	p.take(path, to, kind, info.Mode().Perm())
	return nil
}

func (p *packing) take(from, to, kind string, mode fs.FileMode) {
	p.list = append(p.list, &files.Content{Source: from, Destination: to, Type: kind,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: p.when}})
}

func (p *packing) compress(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return p.put(to, compressed(text))
}

// compressed has no name and no time in it, as gzip -9n does it.
func compressed(text []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // of a wrong level only
	}
	w.ModTime = time.Time{}
	_, _ = w.Write(text) // a bytes.Buffer takes all
	_ = w.Close()
	return b.Bytes()
}

// put takes a text that is made here into the package.
func (p *packing) put(to string, text []byte) error {
	from := filepath.Join(p.made, to)
	if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(from, text, 0o644); err != nil {
		return err
	}
	p.take(from, to, files.TypeFile, 0o644)
	return nil
}
