package main

import (
	"math"
	"os"
	"strconv"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
)

// age prints how long ago the atom last completed, in whole seconds, for adlock_age. An atom that never completed is as
// old as the epoch. For a lock directory, the verb last-age does the same.
func age(args []string) (int, error) {
	words, err := config.Parse([]config.Option{config.StoreOption()}, args)
	if err != nil {
		return 0, err
	}
	if len(words) != 4 || os.Getenv("ADLOCK_STORE") == "" {
		return 0, config.LibraryOnly("age")
	}
	a, err := atom.New(words[0], words[1], words[2], words[3])
	if err != nil {
		return 0, err
	}
	smith, err := openToRead(os.Getenv("ADLOCK_STORE"), "")
	if err != nil {
		return 0, err
	}
	completed, now, err := smith.Completed(a)
	if err != nil {
		return 0, err
	}
	if completed.IsZero() {
		completed = time.Unix(0, 0)
	}
	return 0, config.PrintLine(strconv.FormatInt(int64(math.Floor(now.Sub(completed).Seconds())), 10))
}
