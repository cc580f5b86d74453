//go:build linux

// Idle runs real programs that work and real programs that hang, watches each as a newcomer does
// before it ends an owner at a learned limit, and prints the results as a table.
//
//	go run ./test/support/idle
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"adlock/lib/idle"
	"adlock/lib/killer"
	"adlock/lib/process"
)

// program is a job for sh -c in a directory of its own; hung is the right answer.
type program struct {
	name, needs, script string
	hung                bool
	why                 string // a remark: why the watch is wrong, or may be
}

// silent is a server at $port that takes connections and never answers.
const silent = `python3 -c 'import socket,time
s=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(9)
open("port","w").write(str(s.getsockname()[1])); time.sleep(900)' >/dev/null 2>&1 &
while ! [ -s port ]; do sleep 0.1; done; read -r port <port || :; `

var programs = []program{
	{"sleep", "", "exec sleep 900", true, ""},
	{"a shell that waits for a child that sleeps", "", "sleep 900; :", true, ""},
	{"a shell loop that sleeps 20 s and prints", "", "while sleep 20; do echo; done", false, ""},
	{"a shell loop that spins", "", "while :; do :; done", true, "what spins looks like work"},
	{"until curl ...; do sleep 5; done", "curl", "until curl -s http://127.0.0.1:1/; do sleep 5; done", true, "retries look like work"},
	{"cat of a pipe to which nothing is written", "mkfifo", "mkfifo p; exec cat p", true, ""},
	{"tar to a full pipe", "tar", "mkfifo p; exec 3<>p; dd if=/dev/zero of=f bs=1M count=4 2>/dev/null; tar cf - f >&3", true, ""},
	{"gzip of random bytes", "gzip", "exec gzip -c /dev/urandom >/dev/null", false, ""},
	{"find on a large tree", "find", "while :; do find /usr >/dev/null; done", false, ""},
	{"rsync between two directories", "rsync", "mkdir a; while :; do dd if=/dev/urandom of=a/f bs=1M count=20 2>/dev/null; rsync -a --bwlimit=500 a/ b/; done", false, ""},
	{"rsync from a server that stops answering", "rsync", silent + `exec rsync rsync://127.0.0.1:$port/x/ b/`, true, ""},
	{"curl of a server that stops answering", "curl", silent + `exec curl -s http://127.0.0.1:$port/`, true, ""},
	{"curl --limit-rate 100k", "curl", `dd if=/dev/zero of=big bs=1M count=100 2>/dev/null; python3 -u -m http.server --bind 127.0.0.1 0 >log 2>&1 &
port=; while [ -z "$port" ]; do sleep 0.1; port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' log); done; exec curl -s --limit-rate 100k -o out "http://127.0.0.1:$port/big"`, false, "it takes MBs at once from a fast server, and sleeps on purpose after them"},
	{"curl --limit-rate 10k", "curl", `dd if=/dev/zero of=big bs=1M count=100 2>/dev/null; python3 -u -m http.server --bind 127.0.0.1 0 >log 2>&1 &
port=; while [ -z "$port" ]; do sleep 0.1; port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' log); done; exec curl -s --limit-rate 10k -o out "http://127.0.0.1:$port/big"`, false, "the same"},
	{"ssh to a host that stops answering", "ssh", silent + `exec ssh -o BatchMode=yes -p $port 127.0.0.1 true`, true, ""},
	{"a Python process that sleeps", "python3", "exec python3 -c 'import time; time.sleep(900)'", true, ""},
	{"a Python process with a thread that works", "python3", "exec python3 -c 'import threading,hashlib,time\ndef w():\n  while 1: hashlib.sha256(b\"x\"*9999).digest(); time.sleep(0.01)\nthreading.Thread(target=w).start(); time.sleep(900)'", false, ""},
	{"a Python process that selects each 100 ms", "python3", "exec python3 -c 'import select\nwhile 1: select.select([],[],[],0.1)'", true, ""},
	{"mmap writes", "python3", "exec python3 -c 'import mmap,time\nf=open(\"m\",\"w+b\"); f.truncate(1<<24); m=mmap.mmap(f.fileno(),0)\ni=0\nwhile 1: m[i%(1<<24)]=1; i+=4096; time.sleep(0.05)'", false, ""},
	{"send and recv alone, 20 a second", "python3", "exec python3 -c 'import socket,time\na,b=socket.socketpair()\nwhile 1: a.send(b\"x\"); b.recv(1); time.sleep(0.05)'", false, "seen only if it runs at a look: /proc/PID/io does not count send and recv"},
	{"a wait for a lock (flock)", "flock", "flock f sleep 900 & sleep 1; exec flock f true", true, ""},
	{"a wait for a lock of sqlite", "python3", `python3 -c 'import sqlite3,time
c=sqlite3.connect("d",isolation_level=None); c.execute("begin exclusive"); open("held","w"); time.sleep(900)' &
while ! [ -e held ]; do sleep 0.1; done
exec python3 -c 'import sqlite3; sqlite3.connect("d",timeout=900).execute("begin exclusive")'`, true, "it tries again each 100 ms, and may run at a look"},
	{"make -j of long steps", "make", "printf 'all: a b\\na b:\\n\\twhile sleep 7; do gzip -c /bin/sh >/dev/null; done\\n' >Makefile; exec make -j2", false, ""},
	{"make -j whose steps hang", "make", "printf 'all: a b\\na b:\\n\\t@sleep 900\\n' >Makefile; exec make -j2", true, ""},
	{"a program stopped by STOP", "", `sleep 900 & kill -STOP $!; wait`, true, "what is stopped counts as work, and is told"},
	{"sleep spells of 30 s between work", "gzip", "while :; do gzip -c /bin/sh >/dev/null; sleep 30; done", false, ""},
	{"a sleep that is meant, of 5 minutes", "", "sleep 300; echo done", false, "longer than it is watched"},
	{"perl that ignores SIGCHLD and forks every 2 s", "perl", `exec perl -e '$SIG{CHLD}="IGNORE"; while (1) { sleep 2; fork or exit }'`, false, ""},
	{"perl that forks every 2 s, with SA_NOCLDWAIT", "perl", `exec perl -MPOSIX -e 'sigaction(SIGCHLD, POSIX::SigAction->new("DEFAULT", POSIX::SigSet->new, POSIX::SA_NOCLDWAIT)); while (1) { sleep 2; fork or POSIX::_exit(0) }'`, false, ""},
	{"Python that ignores SIGCHLD, and its subprocess every 2 s", "python3", "exec python3 -c 'import subprocess,signal,time\nsignal.signal(signal.SIGCHLD,signal.SIG_IGN)\nwhile 1: time.sleep(2); subprocess.Popen([\"true\"])'", false, ""},
	{"asyncio that wakes each second", "python3", "exec python3 -c 'import asyncio\nasync def m():\n  while 1: await asyncio.sleep(1)\nasyncio.run(m())'", true, ""},
	{"node with a timer each second", "node", "exec node -e 'setInterval(()=>{},1000)'", true, "it may collect garbage"},
	{"a JVM that waits", "java", `cat >S.java <<'E'
class S { public static void main(String[] a) throws Exception { Thread.sleep(900000); } }
E
exec java S.java`, true, "it reads a little now and then"},
	{"tail -f of a file that nothing writes", "tail", ": >f; exec tail -f f", true, ""},
	{"perl that reads a terminal-like pipe", "perl", `mkfifo p; exec 3<>p; exec perl -e 'while (<STDIN>) { print }' <&3`, true, ""},
	{"a container's process that sleeps", "unshare", "exec unshare --pid --fork --kill-child sh -c 'sleep 900; :'", true, ""},
	{"a container's process that works", "unshare", "exec unshare --pid --fork --kill-child sh -c 'while sleep 2; do gzip -c /bin/sh >/dev/null; done'", false, ""},
	{"a member of another user that sleeps", "setpriv", "setpriv --reuid=65534 --regid=65534 --clear-groups sleep 900; :", true, "only root may read it; to another newcomer it counts as work"},
	{"uninterruptible sleep (a parent in vfork)", "perl", "exec perl -e 'syscall(58) or do { sleep 900; exit }'", true, "it may be a disk"},
	{"a wait for a service elsewhere (HTTP that computes)", "curl", silent + `exec curl -s http://127.0.0.1:$port/`, false, "what another machine does is not seen: the same as ssh with work at its far end"},
	{"dd to a disk", "dd", "while :; do dd if=/dev/zero of=f bs=1M count=50 conv=fsync 2>/dev/null; sleep 1; done", false, ""},
}

// settle is how long each program has to begin to work, or to hang.
const settle = 20 * time.Second

func main() {
	dir, err := os.MkdirTemp("", "adlock-idle-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
		os.Exit(1)
	}
	rows := make([]string, len(programs))
	var all sync.WaitGroup
	for i, p := range programs {
		all.Go(func() { rows[i] = p.row(filepath.Join(dir, fmt.Sprint(i))) })
	}
	all.Wait()
	fmt.Print("| program | is | the watch says | right | why |\n| --- | --- | --- | --- | --- |\n" + strings.Join(rows, ""))
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
	}
}

func (p program) row(dir string) string {
	truth := map[bool]string{true: "hung", false: "at work"}[p.hung]
	said, right := p.watch(dir)
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", p.name, truth, said, right, p.why)
}

// watch starts the program, watches it for a minute, and ends its processes.
func (p program) watch(dir string) (said, right string) {
	if _, err := exec.LookPath(p.needs); p.needs != "" && err != nil {
		return "not here", "-"
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err.Error(), "-"
	}
	job := exec.Command("sh", "-c", p.script)
	job.Dir, job.SysProcAttr = dir, &syscall.SysProcAttr{Setsid: true}
	if err := job.Start(); err != nil {
		return err.Error(), "-"
	}
	defer func() {
		_ = syscall.Kill(-job.Process.Pid, syscall.SIGKILL) // the session's one group
		_ = job.Wait()
	}()
	id, err := process.Of(job.Process.Pid)
	if err != nil {
		return err.Error(), "-"
	}
	time.Sleep(settle)
	verdict, err := idle.Job{Length: time.Minute, Members: func() ([]process.Entry, error) {
		return killer.Members(process.Job{Owner: id, FileUID: -1})
	}}.Watch()
	switch {
	case err != nil:
		return err.Error(), "-"
	case verdict == idle.Verdict{}:
		return "it had ended", "-"
	}
	said = "idle for " + verdict.Idle.String()
	if verdict.Work != "" {
		said = "works: " + verdict.Work
	}
	return said, map[bool]string{true: "yes", false: "no"}[p.hung == (verdict.Work == "")]
}
