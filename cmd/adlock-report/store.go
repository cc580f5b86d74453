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

// store is the address of the chosen store beyond this machine; "": a lock directory is.
func store() string {
	if address := os.Getenv("ADLOCK_STORE"); config.IsRemote(address) {
		return address
	}
	return ""
}

// stored are the atoms and slots of the store, as the locksmith lists them: this program
// links no client of a store.
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
	text.Close() // it may have more to send than was understood
	_ = smith.Wait()
	return entries, slots, fault.Wrap(path, err)
}

// tellStore warns that the answer is about the lock directory alone, if the locks of
// scripts are beyond this machine.
func tellStore(verb string) {
	if dir, err := config.Dir(); err == nil && store() != "" {
		fault.Warn(store(), verb+" tells of lock directories, and so of "+dir)
	}
}

// tellHost says to a person that the runlog is this host's, where the locks are beyond
// this machine.
func tellHost(verb string) {
	if dir, err := config.RunlogDir(); err == nil && store() != "" && terminal.Is(os.Stderr) {
		node, _ := sysfile.NodeName()
		fault.Warn(store(), verb+" tells of the runs of this host alone ("+node+"), as the runlog in "+dir+" has them")
	}
}
