package atom_test

import (
	"fmt"

	"adlock/lib/atom"
)

func ExampleParseFile() {
	a, err := atom.New("cfengine.conf", "dax", "editfile", "/etc/motd")
	if err != nil {
		fmt.Println(err)
		return
	}
	name := a.Name()
	fmt.Println(name.ActiveLock())
	fmt.Println(name.ReaderLock(4711))

	file := atom.ParseFile("lock.cfengine_conf.dax.editfile._etc_motd")
	fmt.Println(file.Kind == atom.ActiveLock, file.Name == name, file.Name.Host())
	fmt.Println(atom.ParseFile("lock.notes").Kind == atom.ActiveLock)
	// Output:
	// lock.cfengine_conf.dax.editfile._etc_motd
	// read.cfengine_conf.dax.editfile._etc_motd.4711
	// true true dax
	// false
}
