// Command sim compares ways to lock a job over simulated years, with the real policy (lib/policy)
// and the real learner (lib/learn), on the loads of loads.go. cron starts the job every minute, and
// a person about every hour.
//
//	go run ./test/sim                 # the tables, in Markdown
//	go run ./test/sim -seeds 10 -write test/sim/README.md
//	go run ./test/sim -svg FILE       # how the limit follows the runtimes
package main

import (
	"flag"
	"fmt"
	"os"

	"adlock/test/support/helper"
)

func main() {
	seeds := flag.Int("seeds", 10, "so many times each")
	runs := flag.Int("runs", 10000, "so many runs each time")
	write := flag.String("write", "", "put the tables into this file, where they stand in test/sim/README.md")
	svg := flag.String("svg", "", "draw a plot into this file instead")
	flag.Parse()
	var err error
	switch {
	case *svg != "":
		err = os.WriteFile(*svg, plot(), 0o644)
	case *write != "":
		err = helper.Insert(*write, "go run ./test/sim", tables(*seeds, *runs))
	default:
		_, err = os.Stdout.WriteString(tables(*seeds, *runs))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}
