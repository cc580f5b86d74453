// Package agent is a helper that stays: for a script that asks often it answers what a
// helper run would answer, without being started anew for each question.
//
// The agent holds two pipes that have no name. The script opens them by way of
// /proc/PID/fd, for one question at a time: so there is no file that could be left
// behind, removed or replaced, and both ends go with the processes that hold them.
//
//	question  TAB NUMBER TAB WORD TAB WORD ... TAB LF  what a helper run is told
//	answer    NUMBER STATUS[ WORDS][TAB LINE]... LF    its exit status, and what it says
//	          NUMBER helper LF                         nothing was changed: run a helper
//
// Each is one write of at most PIPE_BUF bytes, so none is torn by another. Numbers only
// grow: a question that was answered is never answered again, and the script passes over
// an answer to an earlier question, left unread when a trap interrupted the script. A longer
// question, or one whose words are not whole, is answered `helper`. Any other line, or an
// earlier number, ends the agent: so whatever the script writes gets an answer or that end.
//
// How the script knows whom it asks: the agent holds the directory /proc/OWNER open, and
// after it has opened the pipes the script looks whether /proc/PID/fd/N is its own
// /proc/self. Then that process is an agent of its own, and had that pid when the pipes
// were opened; a subshell, or another process with the agent's pid, fails there. How it
// knows that there will be no answer: the agent alone holds the writing end of the answers, so
// its death ends them.
//
// The agent is a child of init, in a session of its own, has none of the script's
// descriptors, and leaves when the script is gone, by its pidfd, or after a minute without a
// question (after ten seconds without the first one: a script that can ask does so at once).
// Before it leaves it takes down its sign, a second descriptor of /proc/OWNER: the script
// opens the pipes only after it has seen the sign, and is answered until the agent is gone.
package agent

import (
	"errors"

	"adlock/lib/process"
)

// Answer is how a question ended: the exit status of a helper run, and what the script
// has to know beside it.
type Answer struct {
	Status int
	Words  string // no line feed in it
}

// Answerer answers a question for the owner. ErrHelper says that a helper run has to do
// it, and that nothing was changed; any other error counts as that too.
type Answerer func(owner process.Identity, args []string) (Answer, error)

// ErrHelper is the answer to what an agent does not do.
var ErrHelper = errors.New("a helper run has to do it")

// Longest is how many bytes a question or an answer can have (PIPE_BUF).
const Longest = 4096
