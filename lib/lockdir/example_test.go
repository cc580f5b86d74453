package lockdir_test

import (
	"fmt"
	"os"

	"adlock/lib/atom"
	"adlock/lib/lockdir"
	"adlock/lib/locker"
)

// This process takes an atom, asks for it again, and releases it.
func Example() {
	path, err := os.MkdirTemp("", "locks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(path)
	locks, err := lockdir.Open(path, locker.Recorder{})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := locker.NewRequest()
	request.Atom = atom.Atom{Program: "backup", Host: "dax", Operator: "copy", Operand: "nightly"}
	if request.Owner, err = locker.OwnedBy(os.Getpid()); err != nil {
		fmt.Println(err)
		return
	}
	taken, err := locks.Take(request)
	fmt.Println(taken.Verdict, err)
	again, err := locks.Take(request)
	fmt.Println(again.Verdict, err)
	fmt.Println(locks.Release(locker.ReleaseRequest{Name: request.Atom.Name(), Token: taken.Token}))
	// Output:
	// acquired <nil>
	// busy <nil>
	// <nil>
}
