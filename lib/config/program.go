package config

import (
	"errors"
	"os"
	"strings"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// Program is a program with verbs: what its help tells of, and what it does.
type Program struct {
	Name  string // by which it was called: its messages tell how to ask for help
	Does  string
	Verbs []Verb
	Notes string // what the help ends with

	// IsCommand tells whether a word that is no verb is a command: then run was
	// forgotten. nil: not checked.
	IsCommand func(word string) bool

	// Meant is the verb that a word which is none was probably meant for, however
	// little alike they are; "": none. nil: not checked.
	Meant func(word string) string
}

// Verb is one thing that a program does.
type Verb struct {
	Name    string
	Does    string // "": a verb of the library's, which the help does not tell of
	Args    string // what it takes besides options; "": nothing
	Options func() []Option
	More    func() []List // what its help tells besides

	// Run is given the arguments behind the verb. It returns the status to exit
	// with; with an error and status 0, the error's own.
	Run func(args []string) (status int, err error)
}

// List is a part of a help text: words, and what each means.
type List struct {
	Title string
	Lines [][2]string
}

// Main carries out the arguments of the program, tells on standard error what
// went wrong, and returns the status to exit with.
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

// AsOptions turns the verbs help and version into the options that say the same.
func AsOptions(args []string) []string {
	switch {
	case len(args) > 1 && args[0] == "help" && args[1] != "help" && args[1] != "version":
		return []string{args[1], "--help"}
	case len(args) > 0 && (args[0] == "help" || args[0] == "version"):
		return []string{"--" + args[0]}
	}
	return args
}

func (p *Program) run(args []string) (int, error) {
	args = AsOptions(args)
	if len(args) == 0 {
		return 0, printHelp(p.Help())
	}
	if v := p.Verb(args[0]); v != nil {
		status, err := v.Run(args[1:])
		if errors.Is(err, ErrHelp) && v.Does != "" {
			return 0, printHelp(p.HelpOf(v))
		}
		if errors.Is(err, ErrHelp) {
			return 0, LibraryOnly(v.Name)
		}
		return status, p.Hint(v.Name, err)
	}
	switch args[0] {
	case "--help", "-h":
		return 0, printHelp(p.Help())
	case "--version", "-v":
		return 0, PrintLine(p.Name + " version " + Version())
	}
	return 0, p.Unknown(args[0])
}

// Verb returns the verb of that name, nil where there is none.
func (p *Program) Verb(name string) *Verb {
	for i := range p.Verbs {
		if p.Verbs[i].Name == name {
			return &p.Verbs[i]
		}
	}
	return nil
}

// Unknown is the error of a first argument that is no verb of the program's.
func (p *Program) Unknown(arg string) error {
	if looksLikeOption(arg) {
		name, _, _ := strings.Cut(arg, "=")
		if run := p.Verb(runVerb); run != nil && find(run.Options(), name) != nil {
			return p.Hint("", withoutRun("option", name))
		}
		return p.Hint("", unknownOption(name, nil))
	}
	var names []string
	for i := range p.Verbs {
		if p.Verbs[i].Does != "" {
			names = append(names, p.Verbs[i].Name)
		}
	}
	names = append(names, "help", "version")
	if p.IsCommand != nil && Nearest(arg, names) == "" && p.IsCommand(arg) {
		return p.Hint("", withoutRun("verb", arg))
	}
	if p.Meant != nil && p.Meant(arg) != "" {
		return p.Hint("", &fault.Error{Kind: fault.Usage, Object: arg, Err: unknown("unknown verb: did you mean " + p.Meant(arg) + "?")})
	}
	return p.Hint("", unknownWord("verb", arg, "", names))
}

// runVerb is the verb that is forgotten now and then, as flock and timeout have none.
const runVerb = "run"

func withoutRun(kind, word string) error {
	return &fault.Error{Kind: fault.Usage, Object: word, Err: unknown("unknown " + kind + ": did you mean " + runVerb + " " + word + "?")}
}

// Hint tells of an unknown option or verb where those of the verb are listed; of the
// program, where verb is "". Any other error is returned as it is, and so is that
// of a verb which no help tells of.
func (p *Program) Hint(verb string, err error) error {
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

// SaysOwner tells whether the arguments of a verb that has no help are the library's:
// it names first of all the process that is to own the lock, which no person types.
func SaysOwner(args []string) bool { return len(args) > 0 && args[0] == "--owner" }

// LibraryOnly refuses a verb of the library's to a person.
func LibraryOnly(verb string) error {
	return fault.New(fault.Usage, verb, "is called by adlock.sh only")
}

// PrintLine writes one line to standard output.
func PrintLine(text string) error { return printText(text + "\n") }

// printHelp has each option on one line for programs that read it, and lines
// that fit for a person at a terminal.
func printHelp(text string) error {
	if columns, is := sysfile.Columns(1); is && columns > 0 {
		text = fold(text, columns)
	}
	return printText(text)
}

// printText writes the text to standard output.
func printText(text string) error {
	_, err := os.Stdout.WriteString(text)
	return fault.Wrap("standard output", err)
}
