package cron

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// queue makes a place with n messages, and a sendmail that notes each message and how many others are being
// sent beside it. It refuses a message that says `bad`.
func queue(t *testing.T, n int, changes ...string) (p *place, line []string) {
	t.Helper()
	p = newPlace(t)
	for i := range n {
		p.message(fmt.Sprint(i))
	}
	must.Do(t, os.Mkdir(p.path("sending"), 0o755))
	p.command("sendmail", await+`read -r word
		mkdir "{dir}/sending/$word" || echo twice:$word >>{dir}/notes
		ls {dir}/sending | wc -l >>{dir}/crowds
		await go
		rmdir "{dir}/sending/$word"
		echo "$word" >>{dir}/notes
		[ "$word" != bad ]`)
	return p, []string{p.example("mail-queue", "bin/mail-queue", changes...), p.path("queue"), "SENDMAIL=" + p.path("bin/sendmail")}
}

func (p *place) message(word string) {
	p.Helper()
	p.write("queue/"+word+".mail", word+"\n", 0o644)
}

func TestAtMostFourWorkersSendEachMessageOnce(t *testing.T) {
	p, line := queue(t, 7)
	var workers []*helper.Process
	for range 7 {
		workers = append(workers, p.line(line...).Start(t))
	}
	helper.Eventually(t, "three have found it full", func() bool {
		return countOf(workers, (*helper.Process).Ended) == 3 && len(p.crowds()) == 4
	})
	p.write("go", "", 0o644)
	for _, worker := range workers {
		p.ends(worker, 0)
		if worker.Output() != "" {
			t.Errorf("said %q", worker.Output())
		}
	}
	if sent := slices.Sorted(slices.Values(p.notes())); strings.Join(sent, " ") != "0 1 2 3 4 5 6" {
		t.Errorf("sent %q", sent)
	}
	if crowds := p.crowds(); slices.Max(crowds) != "4" {
		t.Errorf("at a time: %q", crowds)
	}
	if left, _ := os.ReadDir(p.path("queue")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// crowds returns how many messages were being sent at the start of each delivery.
func (p *place) crowds() []string {
	text, _ := os.ReadFile(p.path("crowds"))
	return strings.Fields(string(text))
}

func countOf[T any](list []T, holds func(T) bool) int {
	n := 0
	for _, one := range list {
		if holds(one) {
			n++
		}
	}
	return n
}

func TestAMessageThatCannotBeSentHoldsUpNoOther(t *testing.T) {
	p, line := queue(t, 1)
	p.write("go", "", 0o644)
	p.message("bad")
	p.silent(line...)
	p.message("-next")
	p.silent(line...)
	p.wantNotes("0 bad -next")
	if !p.has("queue/bad.mail") || p.has("queue/-next.mail") {
		t.Error("it was removed, or the sent one was not")
	}
}
