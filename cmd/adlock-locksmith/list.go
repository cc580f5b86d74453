package main

import (
	"os"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/lease/listing"
)

// list tells adlock-report, through a pipe, what there is in the store.
func list(args []string) (int, error) {
	if len(args) != 0 {
		return 0, fault.New(fault.Usage, "list", "is called by "+config.Reporter+" only")
	}
	smith, err := openToRead(os.Getenv("ADLOCK_STORE"), "")
	if err != nil {
		return 0, listing.Write(os.Stdout, nil, nil, err)
	}
	entries, slots, err := smith.List()
	return 0, listing.Write(os.Stdout, entries, slots, err)
}

// openToAsk opens the store to ask, without taking anything.
func openToAsk() (*lease.Locker, error) {
	length, err := parseLease(os.Getenv("ADLOCK_LEASE"))
	if err != nil {
		return nil, err
	}
	return lockerOf(os.Getenv("ADLOCK_STORE"), length)
}
