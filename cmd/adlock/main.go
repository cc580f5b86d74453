// Command adlock is the helper of the adaptive locks: see adlock(1).
//
// Each verb has a file of its own here. What only tells people something is the
// work of adlock-report beside it, and what needs a store beyond this machine that
// of adlock-locksmith: so this program stays small, and starts fast.
package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"adlock/lib/agent"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hold"
	"adlock/lib/hook"
	"adlock/lib/orphan"
	"adlock/lib/run"
	"adlock/lib/supervise"
	"adlock/lib/sysfile"
)

func main() {
	enlargeStack()
	refuse(config.CheckPrivilege())
	refuse(config.CheckFiles())
	refuse(config.CheckThreads())
	orphan.Main()
	hook.Main()
	agent.Main(answer)
	supervise.Gate()
	os.Exit(program().Main(os.Args[1:]))
}

// enlargeStack has the runtime enlarge this goroutine's stack at once, while there is next
// to nothing on it. Else it is doubled, and all that is on it moved, four times on the way
// down to the system calls, which is a twelfth of what a helper costs.
//
//go:noinline
func enlargeStack() {
	if os.Args == nil { // never: only the room for this matters
		var room [16 << 10]byte
		os.Stdout.Write(room[:])
	}
}

// refuse ends this process if there is a reason to do nothing at all.
func refuse(err error) {
	if err != nil {
		fault.Report(err)
		os.Exit(fault.StatusOf(err))
	}
}

func program() *config.Program {
	return &config.Program{
		Name: "adlock", Does: "adaptive locks for scripts, cron lines and Makefiles",
		Verbs: slices.Concat(
			[]config.Verb{run.Verb(nil), run.Shell(), hold.Verb(nil)}, reports(),
			[]config.Verb{stopVerb, clearVerb, statAgeVerb, mkatomicVerb, killCarefullyVerb, releaseVerb, takeVerb, takeoverVerb, nameVerb, guardVerb, agentVerb, run.Guarded}),
		IsCommand: func(word string) bool {
			_, err := supervise.Find(word)
			return err == nil
		},
		Meant: meant,
	}
}

// meant is the verb for a word that other programs have.
func meant(word string) string {
	switch word {
	case "lock":
		return "run"
	case "end", "abort", "cancel":
		return "stop"
	case "unlock", "remove", "delete", "prune":
		return "clear"
	case "list", "show", "age":
		return "status"
	case "history":
		return "log"
	}
	return ""
}

// reports are the verbs of adlock-report, their help included.
func reports() []config.Verb {
	verbs := slices.Clone(config.Reports)
	for i := range verbs {
		name := verbs[i].Name
		verbs[i].Run = func(args []string) (int, error) {
			err := config.Become(config.Reporter, "for adlock "+name, name, args)
			if name == "wrap" {
				passOn(args)
			}
			return 0, err
		}
	}
	return verbs
}

// passOn copies standard input to standard output where the verb would have been a filter:
// what follows in the pipe is `crontab -`, which would install nothing at all.
func passOn(args []string) {
	other := func(arg string) bool { return arg == "--diff" || !strings.HasPrefix(arg, "-") }
	if !slices.ContainsFunc(args, other) && !sysfile.IsTerminal(0) && !sysfile.IsTerminal(1) {
		_, _ = io.Copy(os.Stdout, os.Stdin) // there is an error to report already
	}
}
