package cronline

import (
	"strings"
	"testing"
)

func TestACommandIsShownWithoutItsPasswords(t *testing.T) {
	for command, want := range map[string]string{
		"backup --password hunter2 /srv": "backup --password *** /srv", "backup --password=hunter2 /srv": "backup --password=*** /srv",
		"backup '--password=hunter 2' /srv": "backup '--password=*** /srv", `backup --password='hun'\''ter2' /srv`: "backup --password=*** /srv",
		`backup --db-passwd "hunter 2" -v`: "backup --db-passwd *** -v", "PGPASSWORD=hunter2 pg_dump x": "PGPASSWORD=*** pg_dump x",
		"cd /x && MYSQL_PWD=hunter2 mysqldump x | gzip": "cd /x && MYSQL_PWD=*** mysqldump x | gzip", "a --api-token hunter2; b": "a --api-token ***; b",
		`curl -d '{"user": "x", "password": "hunter2 two"}' h`: `curl -d '{"user": "x", "password":***`, `x a"b c"pass="hunter2 two" b`: `x a"b c"pass=*** b`,
		"sh -c 'PGPASSWORD=hunter2 pg_dump x' y":          "sh -c 'PGPASSWORD=*** y",
		"sh -c 'cd /x; A_SECRET=hunter2 pg_dump x'":       "sh -c 'cd /x; A_SECRET=*** pg_dump x'",
		"curl https://admin:hunter2@h/x https://h:80/a@b": "curl https://admin:***@h/x https://h:80/a@b",
		"curl 'https://admin:hun@ter2@h/x?y'":             "curl 'https://admin:***@h/x?y'", "curl 'https://h/x?token=hunter2&y=1'": "curl 'https://h/x?token=***",
		"redis-cli -u redis://:hunter2@h": "redis-cli -u redis://:***@h", "curl -u admin:hunter2 h": "curl -u admin:*** h",
		"curl --user=admin:hunter2 h": "curl --user=admin:*** h", "curl -uadmin:hunter2 h": "curl -uadmin:*** h",
		"smbclient -U admin%hunter2 //h/x": "smbclient -U admin%*** //h/x", "curl -H 'Authorization: Bearer hunter2' h": "curl -H 'Authorization:*** h",
		`curl -H "X-Api-Key: hunter2" h`: `curl -H "X-Api-Key:*** h`, "/usr/bin/mysqldump -u root -phunter2 x": "/usr/bin/mysqldump -u root -p*** x",
		"sshpass -p hunter2 ssh h": "sshpass -p *** ssh h", "openssl enc -pass pass:hunter2 -in x": "openssl enc -pass *** -in x",
		"a --token-file /x --password-file=/y":                     "a --token-file /x --password-file=/y",
		"mkdir -p /x && ssh -p 22 h && sudo -u www-data php a.php": "mkdir -p /x && ssh -p 22 h && sudo -u www-data php a.php",
		"psql --no-password db && mysql --password -h h":           "psql --no-password db && mysql --password -h h",
		`wget --header="Authorization: Bearer hunter2" h`:          `wget --header="Authorization:*** h`, `curl -H"X-Api-Key: hunter2" h`: `curl -H"X-Api-Key:*** h`,
		`sh -c "curl -H \"X-Token: hunter2\" h"`: `sh -c "curl -H \"X-Token:***`, `curl -d '{"password": "hunter2"}' h`: `curl -d '{"password":*** h`,
		"rsync -a  /srv\th:/b && passwd -l x": "rsync -a  /srv\th:/b && passwd -l x", "": "",
		"DJANGO_SECRET_KEY=hunter2 x --secret-key hunter2": "DJANGO_SECRET_KEY=*** x --secret-key ***", strings.Repeat(":", 6<<10): "***", strings.Repeat("x ", 5<<9-5) + "x://u:hunter2@h": strings.Repeat("x ", 5<<9-5) + "***",
	} {
		if got := Shown(command); got != want {
			t.Errorf("%s is shown as %s, want %s", command, got, want)
		}
	}
}

func FuzzShown(f *testing.F) {
	for _, seed := range []string{"--password", "' --token= ' x", "a://b:c@", "-p", "-u :", "\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if text := Shown("x --password hunter2 " + command); strings.HasPrefix(text, "x --password hunter2") {
			t.Errorf("%q", text)
		}
	})
}
