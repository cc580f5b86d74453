package cron

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// deployments makes a place with the example, and with a release that begins, waits for a file of its own
// name, and ends.
func deployments(t *testing.T) (p *place, line func(release string, more ...string) []string) {
	t.Helper()
	p = newPlace(t)
	deploy := p.example("ci/deploy", "bin/deploy")
	p.command("release.sh", await+`echo begin:$1 >>{dir}/notes; await "$1"; echo end:$1 >>{dir}/notes`)
	return p, func(release string, more ...string) []string {
		return append([]string{deploy, "production", "release.sh", release}, more...)
	}
}

func (p *place) noted(word string) {
	p.Helper()
	helper.Eventually(p, word+" is noted", func() bool { return strings.Contains(p.read("notes"), word) })
}

func TestDeploysWaitForTheirTurn(t *testing.T) {
	p, line := deployments(t)
	p.write("notes", "", 0o644)
	first := p.line(line("one")...).Start(t)
	p.noted("begin:one")
	second := p.line(line("two")...).Start(t)
	helper.Eventually(t, "the second waits", func() bool { return len(p.events(runlog.Wait)) == 1 })
	p.line(line("three", "DEPLOY_WAIT=1s")...).Run(t).Denied(t)
	p.write("two", "", 0o644)
	p.write("one", "", 0o644)
	first.Is(p, 0, "…")
	second.Is(p, 0, "…")
	p.wantNotes("begin:one end:one begin:two end:two")
}

func TestADeployWaitsForProcessesOfThePreviousDeploy(t *testing.T) {
	need.Tools(t, "setsid")
	p, line := deployments(t)
	p.command("release.sh", await+`echo deploy:$1 >>{dir}/notes
		[ "$1" = next ] || setsid sh -c '`+await+`await go; echo migrated >>{dir}/notes' >/dev/null 2>&1 &`)
	first := p.line(line("first")...).Start(t)
	p.there("notes")
	next := p.line(line("next")...).Start(t)
	helper.Eventually(t, "the next waits", func() bool { return len(p.events(runlog.Wait)) == 1 })
	p.write("go", "", 0o644)
	first.Is(p, 0, "…")
	next.Is(p, 0, "…")
	p.wantNotes("deploy:first migrated deploy:next")
}

// fetches installs a curl that notes its runs.
func (p *place) fetches() {
	p.Helper()
	p.command("curl", await+`[ ! -e {dir}/held ] || await go
		[ ! -e {dir}/offline ] || exit 22
		echo fetched >>{dir}/notes; echo words $(wc -l <{dir}/notes)`)
}

func TestConcurrentJobsDownloadAFileOnce(t *testing.T) {
	p := newPlace(t)
	p.fetches()
	line := []string{p.example("ci/download", "bin/download"), "https://example.org/x", p.path("cache/x")}
	must.Do(t, os.Mkdir(p.path("cache"), 0o755))

	p.write("offline", "", 0o644)
	if r := p.line(line...).Run(t); r.Status != 22 || p.has("cache/x") {
		t.Errorf("offline: %+v", r)
	}
	must.Do(t, os.Remove(p.path("offline")))

	p.write("held", "", 0o644)
	var jobs []*helper.Process
	for range 3 {
		jobs = append(jobs, p.line(line...).Start(t))
	}
	helper.Eventually(t, "two wait", func() bool { return len(p.events(runlog.Wait)) == 2 })
	p.write("go", "", 0o644)
	for _, job := range jobs {
		job.Is(p, 0, "…")
	}
	p.silent(line...)
	p.wantNotes("fetched")

	must.Do(t, os.Remove(p.path("cache/x")))
	p.silent(line...)
	check.Equal(t, "got", p.read("cache/x"), "words 2\n")
}

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
		worker.Is(t, 0, "")
	}
	check.Equal(t, "sent", strings.Join(slices.Sorted(slices.Values(p.notes())), " "), "0 1 2 3 4 5 6")
	check.Equal(t, "sent at a time", slices.Max(p.crowds()), "4")
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
	check.Equal(t, "it is there still", p.has("queue/bad.mail"), true)
	check.Equal(t, "it is there still, though sent", p.has("queue/-next.mail"), false)
}

// eachMake runs a test with GNU make and with BSD make.
func eachMake(t *testing.T, test func(p *place, program string)) {
	for _, program := range []string{"make", "bmake"} {
		t.Run(program, func(t *testing.T) {
			need.Tools(t, program)
			p := newPlace(t)
			p.example("make/Makefile", "Makefile")
			test(p, program)
		})
	}
}

// suites writes test suites that note whether two use the database at once. Each preparation lasts until all
// eight have begun.
func (p *place) suites() {
	p.Helper()
	p.write("prepare", "#!/bin/sh\n"+await+`: >>{dir}/begun; echo >>{dir}/begun
		[ "$(wc -l <{dir}/begun)" -lt 8 ] || : >{dir}/all
		await all`, 0o755)
	p.write("suite", `#!/bin/sh
		mkdir {dir}/in || echo overlap >>{dir}/notes
		sleep 0.05
		echo "$1" >>{dir}/notes
		rmdir {dir}/in`, 0o755)
}

func TestRecipesRunInParallelExceptForWhatTheyShare(t *testing.T) {
	eachMake(t, func(p *place, program string) {
		p.suites()
		p.line(program, "-j8", "test").Run(p).Is(p, 0, "…", "")
		if notes := p.notes(); len(notes) != 8 || strings.Contains(strings.Join(notes, " "), "overlap") {
			p.Errorf("noted %q", notes)
		}
	})
}

func TestADownloadIsRepeatedIfItFailedOrItsFileIsMissing(t *testing.T) {
	eachMake(t, func(p *place, program string) {
		p.fetches()
		p.write("offline", "", 0o644)
		if r := p.line(program, "refresh").Run(p); r.Status == 0 || p.has("words.gz") {
			p.Errorf("offline: %+v", r)
		}
		must.Do(p.T, os.Remove(p.path("offline")))
		for range 2 {
			p.silently(program, "refresh")
		}
		p.wantNotes("fetched")
		must.Do(p.T, os.Remove(p.path("words.gz")))
		p.silently(program, "refresh")
		p.wantNotes("fetched fetched")
		check.Equal(p, "got", p.read("words.gz"), "words 2\n")
	})
}

// silently is like silent, but make may print its directory.
func (p *place) silently(words ...string) {
	p.Helper()
	p.line(words...).Run(p).Is(p, 0, "…", "")
}
