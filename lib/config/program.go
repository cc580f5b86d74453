package config

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

type Program struct {
	Name  string // the name by which the program was called
	Does  string
	Verbs []Verb
	Notes string // the end of the help

	// IsCommand reports whether an unknown verb is a command: then the user has forgotten `run`. nil: not checked.
	IsCommand func(word string) bool

	// Meant returns the verb that an unknown word, such as "unlock", stands for, else ""; nil: not checked.
	Meant func(word string) string
}

type Verb struct {
	Name    string
	Does    string // "": a verb for adlock.sh, which no help lists
	Owned   bool   // the first argument must be --owner, or a person's shell could become an owner
	Args    string // the arguments besides options; "": none
	Options func() []Option
	More    func() []List // further lists for its help

	// Run returns the exit status. If the status is 0, that of the error counts.
	Run func(args []string) (status int, err error)
}

// List is a part of a help text: words, and what each means.
type List struct {
	Title string
	Lines [][2]string
}

// Main runs the program, prints an error, and returns the exit status.
func (p *Program) Main(args []string) int {
	status, err := p.run(args)
	if err == nil {
		return status
	}
	fault.Report(err)
	if status == fault.StatusOK {
		status = fault.StatusOf(err)
	}
	return status
}

// AsOptions turns the verbs help and version into the options of the same meaning.
func AsOptions(args []string) []string {
	hasOption := func(verb string) bool { return verb == "help" || verb == "version" }
	switch {
	case len(args) == 1 && hasOption(args[0]):
		return []string{"--" + args[0]}
	case len(args) == 2 && args[0] == "help" && hasOption(args[1]):
		return []string{"--help"}
	case len(args) == 2 && args[0] == "help":
		return []string{args[1], "--help"}
	}
	return args
}

func (p *Program) run(args []string) (int, error) {
	args = AsOptions(args)
	if len(args) == 0 {
		return 0, printHelp(p.Help())
	}
	if v := p.Verb(args[0]); v != nil {
		if v.Owned && (len(args) == 1 || args[1] != "--owner") {
			return 0, LibraryOnly(v.Name)
		}
		status, err := v.Run(args[1:])
		if errors.Is(err, ErrHelp) && v.Does != "" {
			return 0, printHelp(p.HelpOf(v))
		}
		if errors.Is(err, ErrHelp) {
			return 0, LibraryOnly(v.Name)
		}
		return status, p.hint(v.Name, err)
	}
	switch args[0] {
	case "--help", "-h":
		return 0, printHelp(p.Help())
	case "--version", "-v":
		return 0, PrintLine(p.Name + " version " + Version())
	}
	return 0, p.Unknown(args[0])
}

func (p *Program) Verb(name string) *Verb {
	for i := range p.Verbs {
		if p.Verbs[i].Name == name {
			return &p.Verbs[i]
		}
	}
	return nil
}

// Unknown is the error for a first argument that is no verb of the program.
func (p *Program) Unknown(arg string) error {
	if arg == "help" || arg == "version" {
		return badValue(arg, "is followed by a word too many")
	}
	if looksLikeOption(arg) {
		name, _, _ := strings.Cut(arg, "=")
		if run := p.Verb(runVerb); run != nil && Find(run.Options(), name) != nil {
			return p.hint("", withoutRun("option", name))
		}
		return p.hint("", unknownOption(name, nil))
	}
	var names []string
	for i := range p.Verbs {
		if p.Verbs[i].Does != "" {
			names = append(names, p.Verbs[i].Name)
		}
	}
	names = append(names, "help", "version")
	if p.IsCommand != nil && Nearest(arg, names) == "" && p.IsCommand(arg) {
		return p.hint("", withoutRun("verb", arg))
	}
	if p.Meant != nil && p.Meant(arg) != "" {
		return p.hint("", &fault.Error{Kind: fault.Usage, Object: arg, Err: unknown{kind: "verb", meant: p.Meant(arg)}})
	}
	return p.hint("", unknownWord("verb", arg, "", names))
}

// runVerb is the verb that users of flock(1) and timeout(1), which have no verbs, forget.
const runVerb = "run"

func withoutRun(kind, word string) error {
	return &fault.Error{Kind: fault.Usage, Object: word, Err: unknown{kind: kind, meant: runVerb + " " + word}}
}

// hint adds the --help command to the error for an unknown option of a verb, or for an unknown verb (verb is "").
func (p *Program) hint(verb string, err error) error {
	var e *fault.Error
	var u unknown
	if !errors.As(err, &u) || !errors.As(err, &e) {
		return err
	}
	if v := p.Verb(verb); v != nil && v.Does == "" {
		return err
	}
	asked := strings.Join(strings.Fields(p.Name+" "+verb+" --help"), " ")
	return fault.New(fault.Usage, e.Object, e.Err.Error()+" ("+asked+" lists them)")
}

// LibraryOnly is the error for a verb of adlock.sh with arguments that adlock.sh does not pass.
func LibraryOnly(verb string) error {
	return fault.New(fault.Usage, verb, "is called by adlock.sh only")
}

func PrintLine(text string) error { return printText(text + "\n") }

func printHelp(text string) error { return printText(Folded(text)) }

// Folded folds a help text if standard output is a terminal; else each option stays on one line.
func Folded(text string) string {
	columns, is := sysfile.Columns(1)
	if !is {
		return text
	}
	return fold(text, cmp.Or(columns, 80))
}

func printText(text string) error {
	_, err := os.Stdout.WriteString(text)
	return fault.Wrap("standard output", err)
}
