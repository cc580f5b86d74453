package main

import (
	"errors"
	"strconv"
	"strings"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/run"
)

// agentVerb starts the agent (agent_protocol.go) of the script whose shell is --owner, and prints the agent's greeting.
var agentVerb = config.Verb{Name: "agent", Owned: true, Run: func(args []string) (int, error) {
	var pid int
	rest, err := config.Parse([]config.Option{{Name: "owner", Arg: "PID", Set: config.Number(&pid, 1, 1<<30)}}, args)
	if err != nil {
		return 0, err
	}
	if len(rest) > 0 {
		return 0, config.LibraryOnly("agent")
	}
	owner, err := locker.OwnedBy(pid)
	if err != nil {
		return 0, err
	}
	greeting, err := startAgent(owner)
	if err != nil {
		return 0, fault.Wrap("agent", err)
	}
	return 0, config.PrintLine(greeting)
}}

// answer is the agent's answerer. It answers take, release and age by the code that a helper run uses. It returns an
// error, such as errHelper, if the script must run a helper instead: for another verb, wrong options or a hook
// command, and if more than a check and a change of the lock is needed, such as a wait, a signal or a message.
func answer(owner process.Identity, args []string) (agentAnswer, error) {
	config.Reread()
	switch args[0] {
	case "take":
		return answerTake(owner, args[1:])
	case "release":
		return answerRelease(owner, args[1:])
	case "age":
		if len(args) == 2 {
			age, err := ageOf(args[1])
			return agentAnswer{Words: age}, err
		}
	}
	return agentAnswer{}, errHelper
}

// answerTake answers take, called with a directory for FILE. If the lock is granted, the answer has its token and path.
func answerTake(owner process.Identity, args []string) (agentAnswer, error) {
	s, dir, err := parseTake("take", args, true)
	if err != nil || s.owner != owner.PID || len(dir) > longestLine/2 || s.Hook.Command != "" || len(config.Mistakes(run.Options)) > 0 {
		return agentAnswer{}, errors.Join(errHelper, err)
	}
	s.Request.Owner, s.Request.AtOnce = owner, true
	outcome, err := s.lockIn(dir)
	if err != nil {
		return agentAnswer{}, err
	}
	a := agentAnswer{Status: config.Answer(outcome.Verdict)}
	if outcome.Verdict == locker.Acquired {
		a.Words = outcome.Token + " " + dir + "/" + s.Request.Atom.Name().ActiveLock()
	}
	return a, nil
}

// answerRelease answers release, called with the status and the lock's line in the script's list: OWNER TOKEN FILE.
func answerRelease(owner process.Identity, args []string) (agentAnswer, error) {
	if len(args) != 2 {
		return agentAnswer{}, errHelper
	}
	line := strings.SplitN(args[1], " ", 3)
	if pid, _, _ := strings.Cut(line[0], "."); len(line) != 3 || pid != strconv.Itoa(owner.PID) {
		return agentAnswer{}, errHelper
	}
	a, dir, r, err := parseRelease([]string{"--token", line[1], "--status", args[0], "--", line[2]})
	if err != nil {
		return agentAnswer{}, err
	}
	if a.hook.Command != "" || a.retry {
		return agentAnswer{}, errHelper
	}
	r.PID, r.AtOnce = owner.PID, true
	return agentAnswer{}, releaseIn(dir, r, &a.hook)
}
