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

func store() string {
	if address, err := config.Store(); err == nil && config.IsRemote(address) {
		return address
	}
	return "" // config.Dir returns the error
}

func stored() (entries []locker.Entry, slots []locker.Slot, err error) {
	slots, err = askLocksmith("list", func(answer io.Reader) (slots []locker.Slot, err error) {
		entries, slots, err = listing.Read(answer)
		return slots, err
	})
	return entries, slots, err
}

func tryStore() (listing.Trial, error) { return askLocksmith("try", listing.ReadTrial) }

// askLocksmith runs a verb of adlock-locksmith, the only program with clients of stores, and reads its output.
func askLocksmith[T any](verb string, read func(io.Reader) (T, error)) (answer T, err error) {
	path, err := config.FindPartner(config.Locksmith, "for a store beyond this machine")
	if err != nil {
		return answer, err
	}
	smith := exec.Command(path, verb)
	smith.Stderr = os.Stderr
	text, err := smith.StdoutPipe()
	if err == nil {
		err = smith.Start()
	}
	if err != nil {
		return answer, &fault.Error{Kind: fault.Unavailable, Object: path, Err: err}
	}
	answer, err = read(text)
	text.Close() // so that the locksmith does not wait if it sends more than was read
	_ = smith.Wait()
	return answer, fault.Wrap(path, err)
}

// tellHost warns a person at a terminal, if a store is used, that the runlog has only the runs of this host.
func tellHost(verb string) {
	if dir, err := config.RunlogDir(); err == nil && store() != "" && terminal.Is(os.Stderr) {
		node, _ := sysfile.NodeName()
		fault.Warn(store(), verb+" tells of the runs of this host alone ("+node+"), as the runlog in "+dir+" has them")
	}
}
