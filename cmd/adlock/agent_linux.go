package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

const (
	wordSeparator = "\t"
	agentTitle    = "adlock: agent" // argv[0] of an agent: no verb, so no person types it
)

// startAgent starts the owner's agent and waits until it is ready. The greeting consists of shell assignments, with the
// paths by which the script opens the agent's descriptors.
func startAgent(owner process.Identity) (greeting string, err error) {
	null, err := sysfile.Open(os.DevNull, unix.O_RDWR)
	if err != nil {
		return "", err
	}
	defer unix.Close(null)
	self, err := sysfile.OwnProgram()
	if err != nil {
		return "", err
	}
	var line [2]int
	if err := unix.Pipe2(line[:], unix.O_CLOEXEC); err != nil {
		return "", err
	}
	args := []string{agentTitle, strconv.Itoa(owner.PID), strconv.FormatUint(owner.Start, 10), strconv.FormatUint(owner.Inode, 10)}
	// Nothing waits for the agent here: this process exits soon, and init or the nearest subreaper reaps it.
	_, err = syscall.ForkExec(self, args, &syscall.ProcAttr{
		Dir: "/", Env: agentEnvironment(), Files: []uintptr{uintptr(null), uintptr(line[1]), uintptr(null)}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	unix.Close(line[1])
	if err != nil {
		return "", err
	}
	text := make([]byte, 1000)
	n, err := sysfile.Read(line[0], text)
	if err == nil && n == 0 {
		err = errors.New("it died before it was ready")
	}
	return string(text[:max(n, 0)]), err
}

// agentEnvironment returns this process's environment without adlock's settings: each question brings its own.
func agentEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "ADLOCK_") })
}

// agentMain is one of the first calls of main. In an agent it never returns; elsewhere it does nothing.
func agentMain(answer answerer) {
	if os.Args[0] != agentTitle {
		return
	}
	if len(os.Args) == 4 {
		fault.Report(serveOwner(answer)) // written to /dev/null if serveOwner has failed early
	}
	os.Exit(fault.StatusSystem)
}

type agentServer struct {
	owner   process.Identity
	answer  answerer
	last    int          // the number of the question that was answered last
	steps   atomic.Int64 // grows by one before each answer and after it: odd while the agent is at work
	at      atomic.Int64 // process.Boottime of the last step
	null    int          // descriptor of /dev/null; the fields below are descriptors, too
	sign    int          // open at /proc/OWNER until the agent is about to leave
	answers int
	said    int // the reading end of the pipe that is this process's standard error
}

func serveOwner(answer answerer) error {
	process.CloseInherited(3)
	debug.SetGCPercent(50) // a small heap: 2 MiB between two collections
	s := &agentServer{answer: answer}
	owner, err := s.attend(os.Args[1:])
	if err != nil {
		return err
	}
	questions, err := s.openPipes()
	if err != nil {
		return err
	}
	if err := s.greet(questions); err != nil {
		return err
	}
	s.at.Store(int64(process.Boottime()))
	go s.leave(owner)
	asked := bufio.NewReaderSize(questionPipe(questions), 2*longestLine)
	for {
		question, err := nextQuestion(asked)
		if err != nil {
			return err
		}
		s.step()
		if err := s.reply(question); err != nil {
			return err
		}
		s.step()
	}
}

func (s *agentServer) step() {
	s.at.Store(int64(process.Boottime()))
	s.steps.Add(1)
}

// nextQuestion reads a line. A line too long for a question is cut, as its number is enough to answer `helper`.
func nextQuestion(asked *bufio.Reader) (question string, err error) {
	line, err := asked.ReadSlice('\n')
	question = string(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = asked.ReadSlice('\n')
	}
	return question, err
}

type questionPipe int

func (s questionPipe) Read(into []byte) (int, error) {
	s.linger()
	n, err := sysfile.Read(int(s), into)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// lingering is how long linger waits for a busy script. During that wait, the agent does not notice its owner's death.
const lingering = 20 * time.Millisecond

// linger waits a moment for the next question, by a system call that the Go runtime does not know of. Otherwise
// the runtime would, at each question, wake two threads and check them every 20 microseconds.
func (s questionPipe) linger() {
	asked := []unix.PollFd{{Fd: int32(s), Events: unix.POLLIN}}
	most := unix.NsecToTimespec(lingering.Nanoseconds())
	// A signal or an error ends this wait, too: the read that follows waits, or returns the error.
	unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&asked[0])), uintptr(len(asked)), uintptr(unsafe.Pointer(&most)), 0, 0, 0)
}

// attend opens a handle of the owner in args (pid, start, inode), which the helper run that started the agent
// has verified. attend returns an error if the pid is another process's by now, or if the handle cannot wait.
func (s *agentServer) attend(args []string) (owner process.Handle, err error) {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return owner, err
	}
	if s.owner, err = process.Of(pid); err != nil {
		return owner, err
	}
	if strconv.FormatUint(s.owner.Start, 10) != args[1] || strconv.FormatUint(s.owner.Inode, 10) != args[2] {
		return owner, unix.ESRCH
	}
	if owner, err = process.Hold(s.owner.Key(), s.owner.Inode); err != nil {
		return owner, err
	}
	if !owner.Await(0) {
		return owner, unix.ENOSYS // nothing would report the owner's end
	}
	return owner, nil
}

// An agent exits if no question comes for idleTime: a script that sleeps needs no agent, and one that became another
// program by exec asks no more. If the first question, due at once after the greeting, does not come, the agent exits
// after unasked. A leaving agent answers late questions until none has come for parting.
var (
	idleTime = time.Minute
	unasked  = 10 * time.Second
	parting  = 2 * time.Second
)

// leave ends this process when the owner has exited, or has asked nothing for a while. First, leave closes the sign. A
// script that has found the sign open may still ask; a script that finds the sign closed starts another agent.
func (s *agentServer) leave(owner process.Handle) {
	for !owner.Exited() && s.quietFor() < s.patience() {
		owner.Await(s.patience() - s.quietFor())
	}
	if err := unix.Dup3(s.null, s.sign, unix.O_CLOEXEC); err != nil {
		os.Exit(fault.StatusSystem)
	}
	for down := process.Boottime(); !owner.Exited() && min(s.quietFor(), process.Boottime()-down) < parting; {
		owner.Await(parting)
	}
	os.Exit(fault.StatusOK)
}

func (s *agentServer) patience() time.Duration {
	if s.steps.Load() == 0 {
		return unasked
	}
	return idleTime
}

func (s *agentServer) quietFor() time.Duration {
	if s.steps.Load()%2 == 1 {
		return 0 // a question is being answered
	}
	return process.Boottime() - time.Duration(s.at.Load())
}

// openPipes makes the pipes. The agent also keeps the writing end of the questions open: otherwise it would read the
// end of the pipe whenever the script has not opened that end.
func (s *agentServer) openPipes() (questions int, err error) {
	var asked, answered, said [2]int
	for _, ends := range []*[2]int{&asked, &answered, &said} {
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return 0, err
		}
	}
	// This process does not keep the reading end of the answers: once the script is gone, a write fails.
	unix.Close(answered[0])
	s.answers, s.said = answered[1], said[0]
	if err := unix.SetNonblock(s.said, true); err != nil {
		return 0, err
	}
	return asked[0], unix.Dup3(said[1], 2, unix.O_CLOEXEC)
}

func (s *agentServer) greet(questions int) error {
	owner, err := sysfile.Open("/proc/"+strconv.Itoa(s.owner.PID), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	if s.owner.Life() != process.Alive {
		return unix.ESRCH // the pid was another process's by then
	}
	if s.null, err = sysfile.Open(os.DevNull, unix.O_RDWR); err != nil {
		return err
	}
	if s.sign, err = unix.FcntlInt(uintptr(owner), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return err
	}
	line := ""
	for _, end := range []struct {
		variable string
		fd       int
	}{{"agent_sign", s.sign}, {"agent_at", owner}, {"questions", questions}, {"answers", s.answers}} {
		line += "_adlock_" + end.variable + "=/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(end.fd) + " "
	}
	if _, err := sysfile.Write(1, []byte(line+"_adlock_agent=tried")); err != nil {
		return err
	}
	return unix.Dup3(s.null, 1, unix.O_CLOEXEC)
}

// errNoQuestion ends the agent after a line that is no question: a waiting script then reads the end of the pipe.
var errNoQuestion = errors.New("no question, or one of an earlier number")

// reply answers one question. If it fails, the agent must exit: otherwise the script would wait for ever.
func (s *agentServer) reply(question string) error {
	words := strings.Split(question, wordSeparator) // "", the number, the words, "\n"
	if len(words) < 3 || words[0] != "" {
		return errNoQuestion
	}
	number, err := strconv.Atoi(words[1])
	if err != nil || number <= s.last {
		return errNoQuestion
	}
	s.last = number
	answer, err := agentAnswer{}, errHelper
	if end := len(words) - 1; len(question) <= longestLine && end > 2 && words[end] == "\n" {
		answer, err = s.answer(s.owner, words[2:end])
	}
	said := s.messages()
	text := strconv.Itoa(number) + " helper"
	if err == nil {
		text = strconv.Itoa(number) + " " + strconv.Itoa(answer.Status)
		if answer.Words != "" {
			text += " " + answer.Words
		}
		for _, line := range said {
			text += wordSeparator + line
		}
	}
	_, err = sysfile.Write(s.answers, []byte(text[:min(len(text), longestLine-1)]+"\n"))
	return err
}

// messages returns the lines written to standard error since the last call.
func (s *agentServer) messages() []string {
	text, buffer := "", make([]byte, longestLine)
	for {
		n, err := sysfile.Read(s.said, buffer)
		if err != nil || n == 0 {
			break
		}
		text += string(buffer[:n])
	}
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
