package crontab

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"adlock/test/support/must"
)

func TestAFileThatCronNeverReadsHasAReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	must.Do(t, os.WriteFile(path, nil, 0o644))
	for _, c := range []struct {
		name     string
		mode     os.FileMode
		isDebian bool
		wrong    bool
	}{
		{"job_a-1", 0o644, true, false}, {"job.cron", 0o644, true, true}, {"job.cron", 0o644, false, false}, {"job", 0o664, false, true}, {"job", 0o646, true, true}, {"job", 0o600, true, false},
	} {
		must.Do(t, os.Chmod(path, c.mode))
		info := must.Get(os.Stat(path))(t)
		owner, _ := neverRead(info, "job", false)
		if reason, cure := neverRead(info, c.name, c.isDebian); (reason != "") != (c.wrong || owner != "") || (reason == "") != (cure == "") {
			t.Errorf("%+v: %q, %q", c, reason, cure)
		}
	}
	if reason, _ := Unread(path); reason != "" {
		t.Errorf("elsewhere: %s", reason)
	}
}

func TestTheCrontabsOfAMachineAreThoseThatCronReads(t *testing.T) {
	root := t.TempDir()
	want := []string{}
	for _, path := range []string{"/etc/crontab", "/etc/cron.d/a", "/etc/cron.d/b.c", "/var/spool/cron/crontabs/root"} {
		want = append(want, root+path)
	}
	for _, path := range append(want, root+"/etc/cron.d/.placeholder", root+"/etc/cron.d/a~", root+"/etc/cron.d/a.dpkg-old", root+"/etc/cron.d/a.rpmsave", root+"/var/spool/cron/atjobs/a1") {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, nil, 0o644))
	}
	must.Do(t, os.Symlink("../var/spool/cron/crontabs", root+"/etc/crontabs"))
	if got, failed := System(root); !slices.Equal(got, want) || len(failed) > 0 {
		t.Errorf("%q, %v, want %q", got, failed, want)
	}
	if got, failed := System(t.TempDir()); len(got)+len(failed) > 0 {
		t.Errorf("nothing there: %q, %v", got, failed)
	}
}
