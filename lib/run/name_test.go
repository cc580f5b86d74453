package run

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"adlock/lib/atom"
	"adlock/test/support/must"
)

func TestARemoteStoreGetsOnlyADigestOfTheCommand(t *testing.T) {
	for store, digest := range map[string]bool{"": false, "/locks": false, "etcd://h:1/p": true, "ftp://u@h/d": true} {
		r := newRun()
		r.store, r.Request.Atom.Host = store, "h"
		must.Do(t, r.nameAtom("curl", []string{"/usr/bin/curl", "-u", "admin:hunter2"}))
		a := r.Request.Atom
		if atom.IsDigest(a.Command) != digest || digest == strings.Contains(a.Command, "hunter2") || strings.Contains(a.Operand, "hunter2") {
			t.Errorf("%q: %+v", store, a)
		}
		if r.command != "/usr/bin/curl -u admin:hunter2" {
			t.Errorf("%q: the dry run says %s", store, r.command)
		}
	}
}

func TestANamedPipeAsTheJobsShellIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shell")
	must.Do(t, syscall.Mkfifo(path, 0o700))
	pipe := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer pipe.Close()
	must.Get(pipe.WriteString(shellMark))(t)
	if isThis(path) {
		t.Error("a named pipe was read")
	}
}

func TestAMissingCommandsNameShowsNoArguments(t *testing.T) {
	for word, want := range map[string]string{
		"PGPASSWORD=x": "PGPASSWORD", "curl -u admin:hunter2 https://x/y": "curl", "/usr/bin/nosuch": "nosuch", "nosuch;x": "nosuch", "=x": "command", "(a)": "command",
	} {
		if got := harmless(word); got != want {
			t.Errorf("%s is called %q, want %q", word, got, want)
		}
	}
}

func TestAnEncodedWordIsASCIIAndCanBeDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := string(rapid.SliceOf(rapid.Byte()).Draw(t, "word"))
		text := Encode(word)
		if got := decode(text); got != word {
			t.Errorf("%q: %q", word, got)
		}
		for _, b := range []byte(text) {
			if b < ' ' || b > '~' {
				t.Errorf("%q holds %q", text, b)
			}
		}
	})
}

func TestEncodeLeavesPlainAndLongWordsAsTheyAre(t *testing.T) {
	for _, word := range []string{"sh", "/usr/bin/dash", "it's so", "-e", "a=b"} {
		if got := Encode(word); got != word {
			t.Errorf("%q: %q", word, got)
		}
	}
	word := strings.Repeat("\u00e9", longestArgument/2-2)
	if got := Encode(word); len(got) >= longestArgument || decode(got) != word {
		t.Errorf("a long word became %d bytes", len(got))
	}
}
