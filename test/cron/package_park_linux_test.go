//go:build soak

package cron

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

func TestTheAnsibleRoleSetsUpADebianAndThenChangesNothing(t *testing.T) {
	t.Parallel()
	released(t)
	d := newDebian(t, "ansible-core", "python3-apt")
	d.bring("release/*_amd64.deb", "adlock.deb")
	for _, example := range []string{"ansible", "park/setup"} {
		want(t, "cp", "-r", filepath.Join(helper.Root(), "test/examples", example), filepath.Join(d.root, "root"))
	}
	d.want(`mount -t tmpfs tmpfs /dev/shm && mkdir -p /var/lib/prometheus/node-exporter /etc/prometheus/rules
printf 'SHELL=/bin/bash\n*/5 * * * *  root  : feeds ; /bin/true\n' >/etc/cron.d/site`)
	const play = "cd /root/ansible && LC_ALL=C.UTF-8 ansible-playbook -c local -i localhost, -e adlock_deb=/root/adlock.deb site.yml"
	changed := regexp.MustCompile(`ok=\d+ +changed=(\d+) .* failed=0 `)
	for n, want := range []string{"6", "0"} {
		if out := d.want(play); len(changed.FindStringSubmatch(out)) != 2 || changed.FindStringSubmatch(out)[1] != want {
			t.Errorf("play %d: not %s changes:\n%s", n+1, want, out)
		}
	}
	// The script brings a machine to the same state, so it finds nothing to change.
	if out := d.want("sh /root/setup"); out != "" {
		t.Errorf("the script: %s", out)
	}
	if out := d.want("adlock config"); !regexp.MustCompile(`ADLOCK_SYSLOG +1 +/etc/adlock.conf`).MatchString(out) {
		t.Error(out)
	}
	d.want("sh -c \"$(sed 's/.*root  //' /etc/cron.d/adlock-metrics)\"")
	if out := d.want("cat /etc/cron.d/site /var/lib/prometheus/node-exporter/adlock.prom"); !strings.HasPrefix(out, "SHELL=/usr/lib/adlock/shell\nADLOCK_SHELL=/bin/bash\n") || !strings.Contains(out, "adlock_counted_until_timestamp_seconds ") {
		t.Error(out)
	}
}
