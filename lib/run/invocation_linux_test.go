package run

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	_ "adlock/test/support/need" // the same environment, however the suite is started
)

func TestInvocationReturnsProgramAndArguments(t *testing.T) {
	file, args, known := Invocation(os.Getpid())
	if !known || !slices.Equal(args, os.Args) || !SameFile(file, os.Args[0]) {
		t.Errorf("%s, %v, %v", file, args, known)
	}
}

func TestInvocationKeepsEmptyArguments(t *testing.T) {
	c := exec.Command("cat")
	c.Args = []string{"cat", "", "-", ""}
	in := must.Get(c.StdinPipe())(t)
	must.Do(t, c.Start())
	var args []string
	var known bool
	// Start returns once exec has closed a descriptor, and the kernel does that before it has the arguments in place.
	for end := time.Now().Add(helper.Patience); !known && time.Now().Before(end); time.Sleep(time.Millisecond) {
		_, args, known = Invocation(c.Process.Pid)
	}
	in.Close()
	_ = c.Wait() // there is no file ''
	if !known || !slices.Equal(args, c.Args) {
		t.Errorf("%q, %v", args, known)
	}
}

func TestAPidWithoutAProcessHasNoInvocation(t *testing.T) {
	if _, how, known := Invocation(1 << 29); known {
		t.Error(how)
	}
	if Reads(1<<29, "/") {
		t.Error("it reads")
	}
}

func TestAProcessReadsAScriptThatItHasOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := must.Get(os.Create(path))(t)
	if !Reads(os.Getpid(), path) {
		t.Error("an open file is not read")
	}
	f.Close()
	if Reads(os.Getpid(), path) {
		t.Error("a closed file is read")
	}
}

func TestAForkHasNoInvocation(t *testing.T) {
	c := exec.Command("sh", "-c", `(read -r pid rest </proc/self/stat; echo "$pid"; read -r x); :`)
	in := must.Get(c.StdinPipe())(t)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	defer func() {
		in.Close()
		_ = c.Wait() // read has met the end of the file
	}()
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	subshell, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || subshell == c.Process.Pid {
		t.Fatal(line, err)
	}
	if _, _, known := Invocation(c.Process.Pid); !known {
		t.Error("the shell was started")
	}
	if _, how, known := Invocation(subshell); known {
		t.Error("the subshell was not, but", how)
	}
}
