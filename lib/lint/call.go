package lint

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/config"
	"adlock/lib/cronline"
)

type invocation struct {
	program string // adlock or flock
	call    *syntax.CallExpr
	options map[string]*syntax.Word // values of options of `adlock run` by name; nil for a switch
	lock    *syntax.Word            // the file of flock
	command []*syntax.Word          // the command under the lock; for flock -c one word
	text    string                  // the command of a line below adlock's SHELL, without the words for adlock
	closes  bool                    // the command of flock does not inherit the lock
	waits   bool                    // flock waits for the lock

	isShared bool // flock takes a shared lock

	words   []string // the options of `adlock run` with their values, as far as they are known
	partial bool     // there are other words, which are known only when the line runs
	unknown bool     // the last of the words is no option, or lacks its value: the rest is unknown
}

// invocationOf parses a call of adlock run or flock. It returns nil for another program, for options that are
// not understood, and for flock without a command.
func (c *Checker) invocationOf(call *syntax.CallExpr) *invocation {
	if v := c.readInvocation(call); v != nil && !v.unknown {
		return v
	}
	return nil
}

func (c *Checker) readInvocation(call *syntax.CallExpr) *invocation {
	args := unwrapped(call.Args)
	if len(args) == 0 {
		return nil
	}
	name, _ := literal(args[0])
	switch {
	case path.Base(name) == "adlock" && len(args) > 1 && is(args[1], "run"):
		return c.adlockRun(call, args[2:])
	case path.Base(name) == "flock":
		return flock(call, args[1:])
	}
	return nil
}

func unwrapped(args []*syntax.Word) []*syntax.Word {
	words := texts(args)
	return args[len(args)-len(cronline.Called(words)):]
}

// unknownPart stands in a text for what is known only when the line runs.
const unknownPart = "\x00"

func texts(args []*syntax.Word) (words []string) {
	for _, w := range args {
		text, whole := literal(w)
		if !whole {
			text += unknownPart
		}
		words = append(words, text)
	}
	return words
}

// adlockRun returns nil if an option's name is known only when the call runs, or if the call ends before its value.
func (c *Checker) adlockRun(call *syntax.CallExpr, args []*syntax.Word) *invocation {
	v := &invocation{program: "adlock", call: call, options: map[string]*syntax.Word{}}
	for {
		words := texts(args)
		o, _, n, err := config.Next(c.Options, words)
		switch name, _, inline := strings.Cut(strings.Join(words[:min(1, n)], ""), "="); {
		case err != nil && (strings.Contains(name, unknownPart) || len(args) == 1 && config.Find(c.Options, name) != nil):
			return nil
		case err != nil:
			v.words, v.unknown = append(v.words, name), true
			return v
		case o == nil:
			v.command = args[n:]
			v.partial = v.partial || len(v.command) > 0 && strings.Contains(words[n], unknownPart)
			return v
		case n == 2:
			v.options[o.Name] = args[1]
		case inline:
			v.options[o.Name] = behindEqual(args[0])
		default:
			v.options[o.Name] = nil
		}
		if known := words[:n]; strings.Contains(strings.Join(known, ""), unknownPart) {
			v.partial = true
		} else {
			v.words = append(v.words, known...)
		}
		args = args[n:]
	}
}

// refusal returns the error with which `adlock run` would refuse a call's options; "" if it accepts them or may do so.
// A call without a command may be cut off, and is no mistake. A bad duration in limits has a finding of its own.
func (c *Checker) refusal(v *invocation, getenv func(name string) string, limits ...*syntax.Word) string {
	noDuration := slices.ContainsFunc(limits, func(w *syntax.Word) bool {
		_, wrong := durationOf(w)
		return wrong != ""
	})
	if c.Refusal == nil || v.program != "adlock" || !v.unknown && (len(v.command) == 0 || noDuration) {
		return ""
	}
	var err error
	if v.partial && getenv != nil { // unknown words may complete or contradict the variables, but correct no bad value
		_, err = config.Origins{}.ParseIn(getenv, c.Options, nil)
		getenv = nil
	}
	err = cmp.Or(err, c.Refusal(getenv, v.words))
	if err == nil || errors.Is(err, config.ErrHelp) {
		return ""
	}
	return err.Error()
}

func behindEqual(w *syntax.Word) *syntax.Word {
	if text, whole := literal(w); whole {
		_, value, _ := strings.Cut(text, "=")
		return quoted(value)
	}
	first, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return w
	}
	lit := *first
	_, lit.Value, _ = strings.Cut(first.Value, "=")
	return &syntax.Word{Parts: append([]syntax.WordPart{&lit}, w.Parts[1:]...)}
}

func quoted(text string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: text}}}
}

// flock returns nil if the call locks a descriptor, or has no command.
func flock(call *syntax.CallExpr, args []*syntax.Word) *invocation {
	letters, args := lockerOptions(args)
	if len(args) < 2 {
		return nil
	}
	v := &invocation{program: "flock", call: call, lock: args[0], command: args[1:],
		closes: strings.Contains(letters, "o"), waits: !strings.Contains(letters, "n"), isShared: strings.Contains(letters, "s")}
	if text, _ := literal(args[1]); text == "-c" || text == "--command" {
		v.command = args[2:]
	}
	return v
}

func lockerOptions(args []*syntax.Word) (letters string, rest []*syntax.Word) {
	for len(args) > 0 {
		text, whole := literal(args[0])
		if !whole || len(text) < 2 || text[0] != '-' {
			break
		}
		name, _, inline := strings.Cut(text, "=")
		if option := flockLetters[name]; option != "" {
			text = "-" + option
		}
		inLetters := strings.TrimRight(text[1:], "0123456789.")
		letters += inLetters
		if inLetters == text[1:] && !inline && strings.IndexByte("wEt", text[len(text)-1]) >= 0 {
			args = args[1:]
		}
		args = args[min(1, len(args)):]
	}
	return letters, args
}

// flockLetters has letters for flock's long options: E stands for others with a value, F for others without.
var flockLetters = map[string]string{
	"--close": "o", "--nonblock": "n", "--nb": "n", "--nonblocking": "n", "--wait": "w", "--timeout": "w", "--shared": "s", "--unlock": "u",
	"--conflict-exit-code": "E", "--start": "E", "--length": "E", "--exclusive": "x", "--no-fork": "F", "--fcntl": "F", "--verbose": "F",
}

func (v *invocation) file() *syntax.Word { return cmp.Or(v.lock, v.options["flock"]) }

func (v *invocation) has(name string) bool {
	_, given := v.options[name]
	return given
}

func (v *invocation) named() []*syntax.Word {
	if v.program == "flock" {
		return []*syntax.Word{v.lock}
	}
	var words []*syntax.Word
	for _, name := range []string{"name", "program", "operator", "operand", "host", "flock"} {
		if w := v.options[name]; w != nil {
			words = append(words, w)
		}
	}
	if !v.has("name") && !v.has("operand") {
		words = append(words, v.command...)
	}
	return words
}
