// Mutants tries the tests: it changes the code of a package in one small place
// at a time, and tells which changes no test notices.
//
//	go run ./test/mutants [-tags T] [-match RE] [-every N] [-jobs N] [-list] [-least PERCENT] lib/policy …
//
// The changes: comparisons negated and moved by one, arithmetic and boolean
// operators exchanged, truths turned, whole numbers one higher, calls,
// assignments, jumps and deferred calls removed, errors swallowed. A mutant is
// caught where a test fails or takes far longer than it should. Those that no
// test can catch are listed in equivalent.txt; they do not count, nor do those
// that do not compile.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
)

// fate is what became of a mutant.
type fate int

const (
	survived fate = iota
	caught
	hung // caught: the tests took too long
	equivalent
	broken // it does not compile
	fates
)

// score counts the fates of a package's mutants.
type score [fates]int

// share is the percentage that was caught of those that could be.
func (s score) share() float64 {
	if s[caught]+s[hung]+s[survived] == 0 {
		return 100
	}
	return 100 * float64(s[caught]+s[hung]) / float64(s[caught]+s[hung]+s[survived])
}

func (s score) String() string {
	return fmt.Sprintf("%d caught (%d by the time they took), %d survived: %.1f %%; %d equivalent, %d do not compile",
		s[caught]+s[hung], s[hung], s[survived], s.share(), s[equivalent], s[broken])
}

// options are the command line's.
type options struct {
	tags  string
	match *regexp.Regexp
	list  bool
	every int
	jobs  int
	least float64
}

func main() {
	var o options
	flag.StringVar(&o.tags, "tags", "", "build `tags`")
	flag.BoolVar(&o.list, "list", false, "list the mutants and try none")
	flag.Float64Var(&o.least, "least", 95, "fail below this `percentage`")
	flag.IntVar(&o.every, "every", 1, "try only the `N`th mutant, the 2N-th and so on")
	flag.IntVar(&o.jobs, "jobs", 1, "try `N` mutants at a time: for tests that mostly wait")
	match := flag.String("match", "", "only mutants whose line of the report matches `RE`")
	flag.Parse()
	o.match = regexp.MustCompile(*match)
	if err := all(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func all(o options, packages []string) error {
	reasons, err := parseEquivalents(equivalents)
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range packages {
		errs = append(errs, one(o, path, reasons))
	}
	return errors.Join(errs...)
}

// one tries a package.
func one(o options, path string, reasons map[string]string) error {
	t, err := load("./"+path, o.tags)
	if err != nil {
		return err
	}
	defer os.RemoveAll(t.work)
	t.jobs = max(1, o.jobs)
	mutants, err := t.mutants()
	if err != nil {
		return err
	}
	if o.list {
		for _, m := range mutants {
			fmt.Println(m)
		}
		return nil
	}
	reached, err := t.measure()
	if err != nil {
		return err
	}
	chosen := func(i int) bool { return (i+1)%o.every == 0 && o.match.MatchString(mutants[i].String()) }
	var s score
	alike := map[string]bool{} // the keys of those explained, and whether one did survive
	err = t.all(mutants, chosen, reached, func(m mutant, f fate) {
		_, explained := reasons[m.key()]
		if explained {
			alike[m.key()] = alike[m.key()] || f == survived
		}
		switch {
		case f == survived && explained:
			f = equivalent
		case f == survived:
			fmt.Println("survived:", m)
		}
		s[f]++
	})
	if err != nil {
		return err
	}
	for key, survived := range alike {
		if !survived {
			fmt.Println("not equivalent:", key)
		}
	}
	fmt.Printf("%s: %s\n", path, s)
	if s.share() < o.least {
		return fmt.Errorf("%s: %.1f %% caught, want %v", path, s.share(), o.least)
	}
	return nil
}

// all tries the mutants, those that one binary holds and those that are each
// built by themselves, as many at a time as there are to be jobs.
func (t *target) all(mutants []mutant, chosen func(int) bool, reached []reach, tell func(mutant, fate)) error {
	held, err := t.buildAll(mutants)
	if err != nil {
		return err
	}
	if err := t.unchosen(reached); err != nil {
		return fmt.Errorf("%s, with all its mutants and none chosen: %w", t.ImportPath, err)
	}
	var told sync.Mutex
	return t.parallel(len(mutants), func(i int) error {
		if !chosen(i) {
			return nil
		}
		f, err := t.outcome(mutants[i], i+1, held[i+1], reached)
		if err != nil {
			return err
		}
		told.Lock()
		defer told.Unlock()
		tell(mutants[i], f)
		return nil
	})
}

// unchosen runs the tests as often at a time as mutants are to be tried: what
// fails then would pass for a mutant that was caught.
func (t *target) unchosen(reached []reach) error {
	return t.parallel(t.jobs, func(int) error { return t.run("", ".", patience(reached)) })
}

// parallel calls do with 0 to n-1, at most t.jobs at a time.
func (t *target) parallel(n int, do func(int) error) error {
	var wait sync.WaitGroup
	errs := make([]error, n)
	free := make(chan struct{}, t.jobs)
	for i := range n {
		free <- struct{}{}
		wait.Go(func() {
			errs[i] = do(i)
			<-free
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (t *target) outcome(m mutant, number int, held bool, reached []reach) (fate, error) {
	switch {
	case held:
		return t.try(m, strconv.Itoa(number), reached)
	case m.function != "":
		return broken, nil
	}
	return t.alone(m, reached)
}

// alone tries a mutant in a binary of its own.
func (t *target) alone(m mutant, reached []reach) (fate, error) {
	own := *t
	var err error
	if own.work, err = subdirectory(t.work); err != nil {
		return broken, err
	}
	defer os.RemoveAll(own.work)
	if own.buildMutant(m) != nil {
		return broken, nil
	}
	return own.try(m, "", reached)
}
