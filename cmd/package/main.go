// Command package makes deb, rpm and apk of what `make install PREFIX=/usr` has put into a
// directory, and a bill of the modules that the programs are made of. It is a module of
// its own, as what it needs is no business of those who build adlock.
//
//	go run . -tree DIR [options] deb|rpm|apk|sbom ...
//
// The same tree, version and time give the same bytes. SOURCE_DATE_EPOCH is the time of
// all files (reproducible-builds.org/specs/source-date-epoch).
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// order is what is asked for.
type order struct {
	tree       string // the directory that stands for /
	scripts    string // where prerm and postrm are
	out        string // the directory that the results go to
	arch       string // as Go calls it
	version    string // upstream's
	maintainer string
	changelog  string // the file CHANGELOG.md
	when       time.Time
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o, formats, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, format := range formats {
		make := o.pack
		if format == "sbom" {
			make = o.bill
		}
		if err := make(format); err != nil {
			return fmt.Errorf("%s for %s: %w", format, o.arch, err)
		}
	}
	return nil
}

func parse(args []string) (o order, formats []string, err error) {
	flags := flag.NewFlagSet("package", flag.ExitOnError)
	flags.StringVar(&o.tree, "tree", "", "what was installed with this as `DESTDIR`")
	flags.StringVar(&o.scripts, "scripts", ".", "the `DIR` of prerm and postrm")
	flags.StringVar(&o.out, "out", ".", "the `DIR` for the results")
	flags.StringVar(&o.arch, "arch", "amd64", "the architecture, as Go calls it")
	flags.StringVar(&o.version, "version", "", "the version of adlock")
	flags.StringVar(&o.maintainer, "maintainer", "", "`NAME <ADDRESS>` of who makes the package")
	flags.StringVar(&o.changelog, "changelog", "CHANGELOG.md", "the `FILE` that tells what has changed")
	if err := flags.Parse(args); err != nil {
		return o, nil, err
	}
	if o.tree == "" || o.version == "" || o.maintainer == "" || flags.NArg() == 0 {
		return o, nil, errors.New("wants -tree, -version, -maintainer and a format: deb, rpm, apk, sbom")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return o, nil, errors.New("SOURCE_DATE_EPOCH: wants the seconds since 1970 that all files are to have")
	}
	o.when = time.Unix(seconds, 0).UTC()
	return o, flags.Args(), nil
}

// result is where a result comes to lie. It gets its name only once it is whole.
func (o order) result(name string, write func(*os.File) error) error {
	path := filepath.Join(o.out, name)
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		fmt.Println(path)
	}
	return err
}
