// An agent is a helper process that keeps running, for a script that asks often. It answers each question as a
// helper run for that question would. A release names the lock by its line in the script's list (OWNER TOKEN FILE), so
// that the script need not parse the line.
//
// The agent holds two unnamed pipes. The script opens them through /proc/PID/fd, for one question at a time. So there
// is no file that could be left behind, removed or replaced, and both pipes end with the processes that hold them.
//
//	question  TAB NUMBER TAB WORD TAB WORD ... TAB LF  the arguments of a helper run
//	answer    NUMBER STATUS[ WORDS][TAB LINE]... LF    its exit status, and its messages
//	          NUMBER helper LF                         nothing was changed: run a helper
//
// Each line is one write of at most PIPE_BUF bytes, so writes of two processes do not mix. Numbers only grow: no
// question is answered twice, and the script skips an answer that it left unread when a trap interrupted it. A question
// that is too long or incomplete is answered `helper`. Any other line, or a number that is no higher than the last one,
// ends the agent, so the script always reads an answer or the end of the pipe.
//
// The agent holds the directory /proc/OWNER open. The script, once it has opened the pipes, checks that /proc/PID/fd/N
// is the script's own /proc/self. If so, process PID is its agent, and had that pid when the pipes were opened. In a
// subshell the check fails. Only the agent holds the writing end of the answers, so when the agent dies the script
// reads the end of the pipe.
//
// The agent is an orphan in a session of its own, and has none of the script's descriptors. It exits when the script
// has exited (as its pidfd shows), after a minute without a question, or after ten seconds without the first one.
// Before such an exit it closes its sign, a second descriptor of /proc/OWNER. The script opens the pipes only after it
// has found the sign open, and gets answers until the agent has exited.

package main

import (
	"errors"

	"adlock/lib/process"
)

// agentAnswer is the exit status that a helper run would have, and what else the script must know.
type agentAnswer struct {
	Status int
	Words  string // no line feed in it
}

// answerer answers a question of the owner. Any error, such as errHelper, means that the answerer has changed nothing,
// and that the script must run a helper instead.
type answerer func(owner process.Identity, args []string) (agentAnswer, error)

// errHelper is the answerer's error for a question that it leaves to a helper run.
var errHelper = errors.New("a helper run has to do it")

const longestLine = 4096 // the greatest length of a question or an answer, in bytes (PIPE_BUF)
