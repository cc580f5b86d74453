package supervise

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/idle"
	"adlock/lib/process"
	"adlock/test/support/must"
)

// orPanic is for must, in the processes that play a part in a test.
type orPanic struct{}

func (orPanic) Helper()           {}
func (orPanic) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// The test binary also plays the other processes of these tests: a supervisor like `adlock run`, a
// job that records its signals, and a gate.
func TestMain(m *testing.M) {
	Gate()
	switch os.Getenv("SUPERVISE_ROLE") {
	case "supervisor":
		os.Exit(superviseAsRun())
	case "listener":
		os.Exit(listen())
	case "foreign":
		os.Exit(becomeForeign())
	}
	os.Exit(m.Run())
}

// setup configures a supervisor.
type setup struct {
	Args        []string
	Nested      *setup // the job is another supervisor
	Role        string // SUPERVISE_ROLE of a job that runs this program
	QuietOK     bool
	NoMemory    bool // the system has no files in memory
	Enforce     bool
	WholeJob    bool
	ExpireAfter time.Duration
	Limit       string        // a file: ExpireAfter is over when it exists; "": after that time
	Learned     time.Duration // an ExpireAfter that is set only after Prepare; 0: none
	Watch       time.Duration // set together with Learned
	Pause       time.Duration
	Hold        bool   // wait for a line on standard input between Prepare and Run
	Cancel      bool   // cancel in place of Run
	Report      string // file for report
	Refuses     string // while a file of this name exists, the job's members cannot be recorded
	BeingEnded  string // while a file of this name exists, another process is ending the job
}

// report is what the supervisor writes down about itself and its job.
type report struct {
	PID, Group int
	Gate       int // 0: none
	Result     *Result
	Signals    []string
	Expires    int // how many signals had been sent when Enforce began; -1: it did not
	Stuck      []string
	Err        string
}

func superviseAsRun() int {
	var s setup
	must.Do(orPanic{}, json.Unmarshal([]byte(os.Getenv("SUPERVISE_SETUP")), &s))
	os.Unsetenv("SUPERVISE_ROLE")
	os.Unsetenv("SUPERVISE_SETUP")
	rep := report{PID: os.Getpid(), Expires: -1}
	if s.Refuses != "" {
		againLeast = 100 * time.Millisecond
	}
	if s.Limit != "" {
		newTimer = func(time.Duration) *time.Timer {
			timer := time.NewTimer(time.Hour)
			go func() {
				for !exists(s.Limit) {
					time.Sleep(time.Millisecond)
				}
				timer.Reset(0)
			}()
			return timer
		}
	}
	defer func() { s.write(rep) }()
	if s.NoMemory {
		memory = func(string) (*os.File, error) { return nil, errors.ErrUnsupported }
	}
	path := must.Get(Find(s.Args[0]))(orPanic{})
	job := must.Get(Prepare(Job{Command: s.Args[0], Path: path, Args: s.Args, Env: s.env(), QuietOK: s.QuietOK,
		Enforce: s.Enforce, WholeJob: s.WholeJob, ExpireAfter: s.ExpireAfter, Pause: s.Pause,
		BeingEnded: func() bool { return exists(s.BeingEnded) }, Record: s.record, Rest: s.record,
		Expires: func(time.Duration) { rep.Expires = len(rep.Signals) },
		Stuck: func(why error) {
			rep.Stuck = append(rep.Stuck, why.Error())
			s.write(rep)
		},
		Observe: func(sent signalled) { rep.Signals = append(rep.Signals, sent.Signal) }}))(orPanic{})
	rep.Gate, rep.Group = must.Get(job.Identity())(orPanic{}).PID, syscall.Getpgrp()
	s.write(rep)
	if s.Hold {
		must.Get(bufio.NewReader(os.Stdin).ReadString('\n'))(orPanic{})
	}
	if s.Learned > 0 {
		idle.Shortest = s.Watch
		job.ExpireAfter(s.Learned, s.Watch)
	}
	if s.Cancel {
		job.Cancel()
		return 0
	}
	result, err := job.Run()
	rep.Result = &result
	if err == nil {
		err = job.Show(result)
	}
	if err != nil {
		rep.Err = err.Error()
	}
	return result.Status
}

// record writes the pids to a file beside the report. It refuses while another process is ending the job.
func (s setup) record(members []process.Identity) error {
	if exists(s.BeingEnded) {
		return ErrBeingEnded
	}
	if exists(s.Refuses) {
		return errors.New("the disk is full")
	}
	var pids []string
	for _, id := range members {
		pids = append(pids, fmt.Sprint(id.PID))
	}
	return os.WriteFile(s.Report+".recorded", []byte(strings.Join(pids, " ")+"\n"), 0o644)
}

// env is the job's environment.
func (s setup) env() []string {
	if s.Nested == nil {
		return append(os.Environ(), "SUPERVISE_ROLE="+s.Role)
	}
	text := string(must.Get(json.Marshal(s.Nested))(orPanic{}))
	return append(os.Environ(), "SUPERVISE_ROLE=supervisor", "SUPERVISE_SETUP="+text)
}

// write writes the report, whole or not at all.
func (s setup) write(rep report) {
	must.Do(orPanic{}, os.WriteFile(s.Report+".new", must.Get(json.Marshal(rep))(orPanic{}), 0o644))
	must.Do(orPanic{}, os.Rename(s.Report+".new", s.Report))
}

// listen writes each signal it gets to the file named by its last argument, one a line, until
// standard input ends. On request it starts a child that does the same, to a file of its own.
func listen() int {
	heard := make(chan os.Signal, 64)
	signal.Notify(heard, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
	file := os.Args[len(os.Args)-1]
	out := must.Get(os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644))(orPanic{})
	if os.Args[1] == "parent" {
		args := []string{os.Args[0], "child", file + ".child"}
		pid := must.Get(syscall.ForkExec(os.Args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}}))(orPanic{})
		defer syscall.Wait4(pid, nil, 0, nil)
	}
	fmt.Fprintf(out, "ready %d\n", os.Getpid())
	ended := make(chan struct{})
	go func() { os.Stdin.Read(make([]byte, 1)); close(ended) }()
	for {
		select {
		case sig := <-heard:
			fmt.Fprintln(out, strings.ToLower(sig.String()))
		case <-ended:
			return 7
		}
	}
}

// becomeForeign uses the set-user-ID bit to become root for good, so that its supervisor may not signal it.
func becomeForeign() int {
	must.Do(orPanic{}, syscall.Setresuid(0, 0, 0))
	must.Do(orPanic{}, os.WriteFile(os.Args[1], fmt.Append(nil, os.Getpid(), "\n"), 0o644))
	os.Stdin.Read(make([]byte, 1))
	return 5
}
