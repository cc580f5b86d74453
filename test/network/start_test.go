package network

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/limit"
	"adlock/test/support/helper"
)

// startIsRemembered lets a run wait in line, and then asks how long ago it started: the wait
// counts.
func startIsRemembered(t *testing.T, a, b *host) {
	t.Helper()
	owner := a.start(t, "sleep 60")
	waiter := b.command("true", "--wait=60s", "--from-start").Start(t)
	helper.Eventually(t, "it asks", func() bool {
		files, _ := filepath.Glob("/proc/" + itoa(waiter.PID) + "/fd/*")
		return slices.ContainsFunc(files, func(file string) bool {
			to, _ := os.Readlink(file)
			return strings.HasPrefix(to, "socket:")
		})
	})
	const waited = 4 * time.Second
	time.Sleep(waited) // the wait that must be counted
	owner.Signal(t, syscall.SIGTERM)
	if status := waiter.Wait(t); status != 0 {
		t.Fatalf("%d %s", status, waiter.Output())
	}
	told := b.run(t, "", "--from-start", "--if-elapsed=1h", "--dry-run")
	age := regexp.MustCompile(`^too soon: started (\S+) ago`).FindStringSubmatch(told.Out)
	if age == nil {
		t.Fatalf("%+v", told)
	}
	if ago, err := limit.Parse(age[1]); err != nil || ago < waited-time.Second {
		t.Errorf("said %q of a run that was asked for more than %v ago", told.Out, waited)
	}
}

func TestTheStartUnderEtcdIsWhenTheRunWasAskedFor(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	startIsRemembered(t, newHost(t, s), newHost(t, s))
}

func TestTheStartUnderFTPIsWhenTheRunWasAskedFor(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	startIsRemembered(t, f.host(t), f.host(t))
}
