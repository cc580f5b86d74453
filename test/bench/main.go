// Bench measures what a lock costs, beside other tools.
//
//	go run ./test/bench [-full] [-only LETTERS] [-write FILE] [-svg FILE] [-helper FILE]
//	make bench BENCH='-full -write test/bench/README.md'
//
// A time depends on the machine, so its ratio is given too. The ways of a table take turns in
// rounds; each round gives the ratio of each way to the first one of its table. The tables have the
// median of the rounds and, in brackets, their middle half. If that half is wide, the machine was
// busy with other things. The last column has the goal, and the shells that reach it.
//
// The quick form takes a minute or two, the full one a quarter of an hour. Tools and shells
// that are not installed are left out, and named at the end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"adlock/test/support/helper"
)

func main() {
	isFull := flag.Bool("full", false, "more rounds, every shell, longer contention")
	only := flag.String("only", "", "the tables with these letters")
	write := flag.String("write", "", "put the tables into this file, where they stand in test/bench/README.md")
	picture := flag.String("svg", "", "draw them into this file")
	helper := flag.String("helper", "build/adlock", "the helper; adlock-report is beside it")
	flag.Parse()
	b := quick
	if *isFull {
		b = full
	}
	b.only = *only
	if err := run(b, *helper, *write, *picture); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(b bench, program, write, picture string) error {
	s, err := newScene(context.Background(), program)
	if err != nil {
		return err
	}
	defer s.close()
	go s.closeOnSignal()
	results, err := b.measure(s)
	if err != nil {
		return err
	}
	page := markdown(s.machine(b), results)
	fmt.Print(page)
	if picture != "" {
		if err := os.WriteFile(picture, draw(results), 0o644); err != nil {
			return err
		}
	}
	if write == "" {
		return nil
	}
	return helper.Insert(write, "make bench", page)
}

// root is the project's directory, where make and the go command run.
func root() string {
	path, err := filepath.Abs(".")
	if err != nil {
		return "."
	}
	return path
}
