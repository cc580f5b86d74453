package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

const fencePage = "cmd/adlock-locksmith/fence.md"

// writes lists writers by their fencing tokens, in order, and whether each succeeds: a newer owner keeps an
// older one out, and may write again itself.
var writes = []struct {
	fence string
	done  bool
}{{"7", true}, {"7", true}, {"12", true}, {"7", false}, {"12", true}, {"100", true}, {"99", false}}

func TestTheEtcdFenceExampleLetsOnlyTheNewestOwnerWrite(t *testing.T) {
	t.Parallel()
	m := startEtcd(t, 1)[0]
	shell := func(text, fence string) helper.Result {
		text = `etcdctl() { command etcdctl ` + patient + ` "$@"; }` + "\n" + text
		return helper.Command{Args: []string{"sh", "-c", text}, Env: []string{"ADLOCK_FENCE=" + fence, "ETCDCTL_ENDPOINTS=" + m.Client, "ETCDCTL_API=3"}}.Run(t)
	}
	once := helper.TheRecipe(t, fencePage, `create("/report/fence")`)
	for range 2 {
		shell(once.Text, "").Is(t, 0, "…", "")
	}
	each := helper.TheRecipe(t, fencePage, `value("/report/fence")`)
	last := ""
	for _, w := range writes {
		r := shell(each.Text, w.fence)
		if r.Err != "" || (r.Status == 0) != w.done {
			t.Errorf("owner %s: %+v", w.fence, r)
		}
		if w.done {
			last = w.fence
		}
		if result := shell("etcdctl get --print-value-only /report/result", ""); !strings.HasSuffix(result.Out, "0"+last+"\n") {
			t.Errorf("after owner %s there is %q, of owner %s", w.fence, result.Out, last)
		}
	}
}

func TestTheDatabaseFenceExampleLetsOnlyTheNewestOwnerWrite(t *testing.T) {
	t.Parallel()
	need.Tools(t, "sqlite3")
	file := t.TempDir() + "/db"
	ask := func(text, fence string) string {
		t.Helper()
		ask := exec.Command("sqlite3", "-bail", file)
		ask.Stdin = strings.NewReader(".parameter set :fence " + fence + "\n" + text)
		out, err := ask.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	once := helper.TheRecipe(t, fencePage, "CREATE TABLE").Text
	ask("CREATE TABLE report (line TEXT);"+once+once, "0")
	each := helper.TheRecipe(t, fencePage, "INSERT INTO report").Text
	for _, w := range writes {
		ask("DELETE FROM report;", "0")
		ask(each, w.fence)
		if got := ask("SELECT count(*) FROM report;", "0"); (got == "1\n") != w.done {
			t.Errorf("owner %s wrote %q lines", w.fence, got)
		}
	}
}

func TestTheFileFenceExampleShowsOnlyTheNewestOwnersReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shell := func(text, fence string) string {
		t.Helper()
		r := helper.Command{Args: []string{"sh", "-euc", "make_report() { echo by $ADLOCK_FENCE; }\n" + text}, Dir: dir, Env: []string{"ADLOCK_FENCE=" + fence}}.Run(t)
		r.Is(t, 0, "…", "")
		return r.Out
	}
	write, read := helper.TheRecipe(t, fencePage, "make_report").Text, helper.TheRecipe(t, fencePage, "latest=").Text
	newest := ""
	for _, w := range writes {
		shell(write, w.fence)
		if w.done {
			newest = w.fence
		}
		check.Equal(t, "after owner "+w.fence+" the latest is", shell(read+"cat $latest", ""), "by "+newest+"\n")
	}
}

// The addresses in the pages are replaced by those of this test's servers.
func TestEveryStoreExampleInThePagesRuns(t *testing.T) {
	t.Parallel()
	nodes, f := startEtcd(t, 3), startFTP(t, "")
	h := f.host(t)
	bin := filepath.Dir(binary(t))
	jobs := t.TempDir()
	for _, name := range []string{"backup", "poll"} {
		must.Do(t, need.WriteProgram(jobs+"/"+name, []byte("#!/bin/sh\necho ran\n"), 0o755))
	}
	ofCrontab := regexp.MustCompile(`(?m)^([*/0-9]+ +){5}`)
	count := 0
	tried := map[string]bool{} // two pages may have the same line, which runs once in a minute
	for _, page := range helper.Pages(t) {
		for _, r := range helper.Recipes(t, page) {
			if !r.Has("adlock run --store ") || tried[r.Text] {
				continue
			}
			tried[r.Text] = true
			text := strings.NewReplacer("etcd://a:2379,b:2379,c:2379/prod", url(nodes...), "ftp://user@host/", "ftp://anonymous@"+f.Address+"/",
				"/usr/local/bin/", "").Replace(ofCrontab.ReplaceAllString(r.Text, ""))
			count += strings.Count(text, "adlock run")
			got := helper.Command{
				Args: []string{"sh", "-euc", text}, Limit: h.command("").Limit,
				Env: []string{"ADLOCK_DIR=" + h.dir, "ADLOCK_PROGRAM=p" + strconv.Itoa(count), "ADLOCK_FTP_PASSWORD_FILE=" + f.Password, "PATH=" + bin + ":" + jobs + ":" + os.Getenv("PATH")},
			}.Run(t)
			if got.Status != 0 || got.Err != "" || got.Out != strings.Repeat("ran\n", strings.Count(text, "adlock run")) {
				t.Errorf("%s: %+v\n%s", page, got, text)
			}
		}
	}
	if count < 4 {
		t.Errorf("only %d lines were found", count)
	}
}
