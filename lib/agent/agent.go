// Package agent is a helper that stays: it answers the questions of a script that asks often, as
// helper runs would, but is not started anew for each.
//
// The agent holds two unnamed pipes. The script opens them through /proc/PID/fd, for one question
// at a time: so there is no file that could be left behind, removed or replaced, and both pipes
// end with the processes that hold them.
//
//	question  TAB NUMBER TAB WORD TAB WORD ... TAB LF  the arguments of a helper run
//	answer    NUMBER STATUS[ WORDS][TAB LINE]... LF    its exit status, and its messages
//	          NUMBER helper LF                         nothing was changed: run a helper
//
// Each is one write of at most PIPE_BUF bytes, so none is torn by another. Numbers only grow: an
// answered question is never answered again, and the script skips an answer to an earlier
// question, left unread when a trap interrupted the script. A longer question, or one whose words
// are incomplete, is answered `helper`. Any other line, or an earlier number, ends the agent: so
// the script always gets an answer, or the end of the answers.
//
// How the script knows that it asks its own agent: the agent holds the directory /proc/OWNER
// open, and after it has opened the pipes the script checks that /proc/PID/fd/N is its own
// /proc/self. Then that process is its agent, and had that pid when the pipes were opened; a
// subshell, or another process with the agent's pid, fails there. How it knows that no answer
// will come: only the agent holds the writing end of the answers, so its death ends them.
//
// The agent has no parent that waits for it, is in a session of its own, has none of the script's
// descriptors, and leaves when the script is gone (by its pidfd), or after a minute without a
// question (after ten seconds without the first one: a script that can ask does so at once).
// Before it leaves it closes its sign, a second descriptor of /proc/OWNER: the script opens the
// pipes only after it has seen the sign, and is answered until the agent is gone.
package agent

import (
	"errors"

	"adlock/lib/process"
)

// Answer is the end of a question: the exit status of a helper run, and what else the script must
// know.
type Answer struct {
	Status int
	Words  string // no line feed in it
}

// Answerer answers a question of the owner. ErrHelper says that a helper run must do it, and that
// nothing was changed; any other error counts the same.
type Answerer func(owner process.Identity, args []string) (Answer, error)

// ErrHelper is the answer to a question that an agent does not answer.
var ErrHelper = errors.New("a helper run has to do it")

// Longest is the most bytes of a question or an answer (PIPE_BUF).
const Longest = 4096
