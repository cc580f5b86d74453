package main

import (
	"os"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/lease/listing"
)

func list(args []string) (int, error) {
	if len(args) != 0 {
		return 0, fault.New(fault.Usage, "list", "is called by "+config.Reporter+" only")
	}
	store, err := config.Store()
	if err != nil {
		return 0, err
	}
	smith, err := openToRead(store, "")
	if err != nil {
		return 0, listing.Write(os.Stdout, nil, nil, err)
	}
	entries, slots, err := smith.List()
	return 0, listing.Write(os.Stdout, entries, slots, err)
}

func askStore() (*lease.Locker, error) {
	store, err := config.Store()
	if err != nil {
		return nil, err
	}
	return openToAsk(store, config.Lease())
}
