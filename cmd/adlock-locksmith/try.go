package main

import (
	"os"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lease/listing"
)

// try tests whether the store works, and writes the result to standard output, for adlock-report.
func try(args []string) (int, error) {
	if len(args) != 0 {
		return 0, fault.New(fault.Usage, "try", "is called by "+config.Reporter+" only")
	}
	smith, err := askStore()
	if err != nil {
		return 0, listing.WriteTrial(os.Stdout, listing.Trial{}, err)
	}
	trial, err := smith.Try()
	return 0, listing.WriteTrial(os.Stdout, trial, err)
}
