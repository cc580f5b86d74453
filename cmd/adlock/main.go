// Command adlock is the helper of the adaptive locks: see adlock(1).
//
// Verbs that show something to people are in adlock-report, and what needs a store beyond this machine is in
// adlock-locksmith, so this program stays small and starts fast.
package main

import (
	"os"
	"slices"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hold"
	"adlock/lib/hook"
	_ "adlock/lib/lean" // is initialised before all others
	"adlock/lib/process"
	"adlock/lib/run"
	"adlock/lib/supervise"
)

func main() {
	refuse(config.CheckPrivilege())
	refuse(config.CheckFiles())
	refuse(config.CheckThreads())
	process.OrphanMain()
	hook.Main()
	agentMain(answer)
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
		IsCommand: run.IsCommand, Meant: meant,
	}
}

func meant(word string) string {
	return map[string]string{
		"lock": "run", "end": "stop", "abort": "stop", "cancel": "stop", "unlock": "clear", "remove": "clear", "delete": "clear", "prune": "clear",
		"list": "status", "show": "status", "age": "status", "history": "log",
	}[word]
}

func reports() []config.Verb {
	verbs := slices.Clone(config.Reports)
	for i := range verbs {
		name := verbs[i].Name
		verbs[i].Run = func(args []string) (int, error) {
			err := config.Become(config.Reporter, "for adlock "+name, name, args)
			if name == "wrap" {
				config.PassOn(args)
			}
			return 0, err
		}
	}
	return verbs
}
