// Command adlock is the helper of the adaptive locks: see adlock(1).
//
// Verbs that show something to people are in adlock-report, and what needs a store beyond this machine is in
// adlock-locksmith, so this program stays small and starts fast.
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
	_ "adlock/lib/lean" // is initialised before all others
	"adlock/lib/orphan"
	"adlock/lib/run"
	"adlock/lib/supervise"
	"adlock/lib/sysfile"
)

func main() {
	refuse(config.CheckPrivilege())
	refuse(config.CheckFiles())
	refuse(config.CheckThreads())
	orphan.Main()
	hook.Main()
	agent.Main(answer)
	supervise.Gate()
	os.Exit(program().Main(os.Args[1:]))
}

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
			[]config.Verb{run.Verb(nil), run.Shell(nil), hold.Verb(nil)}, reports(),
			[]config.Verb{stopVerb, clearVerb, statAgeVerb, ageVerb, mkatomicVerb, killCarefullyVerb, releaseVerb, leftVerb, takeVerb, takeoverVerb, nameVerb, lockableVerb, locationsVerb, hostVerb, guardVerb, agentVerb, run.Guarded}),
		IsCommand: func(word string) bool {
			_, err := supervise.Find(word)
			return err == nil
		},
		Meant: meant,
	}
}

func meant(word string) string {
	for _, m := range [][2]string{
		{"run", "lock"}, {"stop", "end abort cancel"}, {"clear", "unlock remove delete prune"}, {"status", "list show age"}, {"log", "history"},
	} {
		if slices.Contains(strings.Fields(m[1]), word) {
			return m[0]
		}
	}
	return ""
}

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

// passOn copies standard input to standard output if the wrap that cannot be started would be a filter (no FILE at its
// end, no --diff). The next command in the pipe may be `crontab -`, which would install an empty crontab.
func passOn(args []string) {
	if len(args) > 0 {
		if _, err := os.Stat(args[len(args)-1]); err == nil {
			return
		}
	}
	if !slices.Contains(args, "--diff") && !sysfile.IsTerminal(0) && !sysfile.IsTerminal(1) {
		_, _ = io.Copy(os.Stdout, os.Stdin) // there is an error to report already
	}
}
