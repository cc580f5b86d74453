package main

import (
	"io"
	"os"
	"os/exec"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/terminal"
	"adlock/lib/lease/listing"
	"adlock/lib/locker"
	"adlock/lib/sysfile"
)

// store returns the address of the chosen store beyond this machine; "": a lock directory is
// chosen.
func store() string {
	if address, err := config.Store(); err == nil && config.IsRemote(address) {
		return address
	}
	return "" // config.Dir returns the error
}

// stored returns the atoms and slots of the store.
func stored() (entries []locker.Entry, slots []locker.Slot, err error) {
	err = askLocksmith("list", func(answer io.Reader) (err error) {
		entries, slots, err = listing.Read(answer)
		return err
	})
	return entries, slots, err
}

// tryStore tries the store.
func tryStore() (trial listing.Trial, err error) {
	err = askLocksmith("try", func(answer io.Reader) (err error) {
		trial, err = listing.ReadTrial(answer)
		return err
	})
	return trial, err
}

// askLocksmith passes the answer of a verb of the locksmith to read: this program links no client of
// a store.
func askLocksmith(verb string, read func(io.Reader) error) error {
	path, err := config.FindPartner(config.Locksmith, "for a store beyond this machine")
	if err != nil {
		return err
	}
	smith := exec.Command(path, verb)
	smith.Stderr = os.Stderr
	text, err := smith.StdoutPipe()
	if err == nil {
		err = smith.Start()
	}
	if err != nil {
		return &fault.Error{Kind: fault.Unavailable, Object: path, Err: err}
	}
	err = read(text)
	text.Close() // so that the locksmith does not wait if it sends more than was read
	_ = smith.Wait()
	return fault.Wrap(path, err)
}

// tellHost tells a person, if a store beyond this machine is chosen, that the runlog has only the
// runs of this host.
func tellHost(verb string) {
	if dir, err := config.RunlogDir(); err == nil && store() != "" && terminal.Is(os.Stderr) {
		node, _ := sysfile.NodeName()
		fault.Warn(store(), verb+" tells of the runs of this host alone ("+node+"), as the runlog in "+dir+" has them")
	}
}
