package main

import (
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

// stored returns the atoms and slots of the store. It asks the locksmith, as this program links no
// client of a store.
func stored() ([]locker.Entry, []locker.Slot, error) {
	path, err := config.FindPartner(config.Locksmith, "for a store beyond this machine")
	if err != nil {
		return nil, nil, err
	}
	smith := exec.Command(path, "list")
	smith.Stderr = os.Stderr
	text, err := smith.StdoutPipe()
	if err == nil {
		err = smith.Start()
	}
	if err != nil {
		return nil, nil, &fault.Error{Kind: fault.Unavailable, Object: path, Err: err}
	}
	entries, slots, err := listing.Read(text)
	text.Close() // so that the locksmith does not wait if it sends more than was read
	_ = smith.Wait()
	pauseAll(entries, hostPause())
	return entries, slots, fault.Wrap(path, err)
}

// tellStore warns, if a store beyond this machine is chosen, that the verb shows only the lock
// directory.
func tellStore(verb string) {
	if dir, err := config.Dir(); err == nil && store() != "" {
		fault.Warn(store(), verb+" tells of lock directories, and so of "+dir)
	}
}

// tellHost tells a person, if a store beyond this machine is chosen, that the runlog has only the
// runs of this host.
func tellHost(verb string) {
	if dir, err := config.RunlogDir(); err == nil && store() != "" && terminal.Is(os.Stderr) {
		node, _ := sysfile.NodeName()
		fault.Warn(store(), verb+" tells of the runs of this host alone ("+node+"), as the runlog in "+dir+" has them")
	}
}
