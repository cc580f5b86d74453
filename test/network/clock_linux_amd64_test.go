//go:build soak

package network

import (
	"bytes"
	"debug/elf"
	bits "encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// startWithClock starts the command. At the given time its wall clock steps, and no other clock. It
// rewrites the code of the vdso(7), by which a process reads the time, before the process's first
// instruction. So the step shows in static programs too, but not in children of the process.
func startWithClock(command *exec.Cmd, at time.Time, by time.Duration) error {
	command.SysProcAttr.Ptrace, command.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	return helper.InKeptThread(func() error { return startTraced(command, at, by) }) // this thread traces
}

func startTraced(command *exec.Cmd, at time.Time, by time.Duration) error {
	if err := command.Start(); err != nil {
		return err
	}
	pid := command.Process.Pid
	var stopped syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &stopped, 0, nil); err != nil {
		return err
	}
	where, err := clockCode(pid)
	if err == nil {
		_, err = syscall.PtracePokeData(pid, where, steppingCode(at, by))
	}
	if err != nil {
		_ = command.Process.Kill()
	}
	if undone := syscall.PtraceDetach(pid); err == nil {
		err = undone
	}
	return err
}

// steppingCode is clock_gettime(clock rdi, timespec rsi) that adds to CLOCK_REALTIME, 0.
func steppingCode(at time.Time, by time.Duration) []byte {
	number := func(n int64) string { return string(bits.LittleEndian.AppendUint64(nil, uint64(n))) }
	return []byte("\xb8\xe4\x00\x00\x00\x0f\x05" + // mov eax, 228; syscall
		"\x85\xff\x75\x1c" + // test edi, edi; jnz to the ret
		"\x49\xb8" + number(at.Unix()) + "\x4c\x39\x06\x7c\x0d" + // mov r8, at; cmp [rsi], r8; jl to the ret
		"\x49\xb8" + number(int64(by/time.Second)) + "\x4c\x01\x06" + // mov r8, by; add [rsi], r8
		"\xc3") // ret
}

// clockCode returns the address of clock_gettime's code in a process.
func clockCode(pid int) (uintptr, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	var begin, end uintptr
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			if _, err := fmt.Sscanf(line, "%x-%x", &begin, &end); err != nil {
				return 0, err
			}
		}
	}
	image := make([]byte, end-begin)
	if _, err := syscall.PtracePeekData(pid, begin, image); err != nil {
		return 0, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	for _, symbol := range symbols {
		if symbol.Name == "__vdso_clock_gettime" && symbol.Size >= uint64(len(steppingCode(time.Time{}, 0))) {
			return begin + uintptr(symbol.Value), nil
		}
	}
	return 0, fmt.Errorf("no room for clock_gettime in the vdso: %v", err)
}

func TestAProcessSeesItsWallClockStep(t *testing.T) {
	file := helper.Dir(t) + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for at, hours := range map[time.Time]int{time.Now().Add(-second): 1, time.Now().Add(time.Hour): 0} {
		command := exec.Command(binary(t), "stat-age", file)
		var said bytes.Buffer
		command.Stdout, command.SysProcAttr = &said, new(syscall.SysProcAttr)
		if err := startWithClock(command, at, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil || number(t, said.String())/3600 != int64(hours) {
			t.Errorf("%v: said %q, want %d hours", err, said.String(), hours)
		}
	}
}
