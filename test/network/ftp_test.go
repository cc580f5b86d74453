package network

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/lease/ftp"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// ftpd is a vsftpd with one account.
type ftpd struct {
	address  string // HOST:PORT
	root     string
	password string // the file that holds it
	config   string
	cmd      *exec.Cmd
}

// startFTP starts a vsftpd that keeps its files in a directory of the test, or in dir.
func startFTP(t testing.TB, dir string) *ftpd {
	t.Helper()
	return startFTPAt(t, freePort(t), dir)
}

func startFTPAt(t testing.TB, address, dir string) *ftpd {
	t.Helper()
	need.Tools(t, "vsftpd")
	need.Root(t) // vsftpd becomes another user for each session
	account, err := user.Lookup("ftp")
	if err != nil {
		need.Skip(t, "there is no user ftp, as whom vsftpd serves")
	}
	f := &ftpd{address: address}
	base := t.TempDir()
	passable(t, base)
	if f.root = dir; dir == "" {
		f.root = base + "/root/locks"
		if err := os.MkdirAll(f.root, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	uid, _ := strconv.Atoi(account.Uid)
	if err := os.Chown(f.root, uid, -1); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		if err := os.WriteFile(base+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return base + "/" + name
	}
	f.password = write("password", password)
	host, port, _ := strings.Cut(f.address, ":")
	f.config = write("vsftpd.conf", strings.Join([]string{
		"listen=YES", "listen_ipv6=NO", "listen_address=" + host, "listen_port=" + port,
		"anonymous_enable=YES", "local_enable=NO", "write_enable=YES", "anon_root=" + filepath.Dir(f.root),
		"anon_upload_enable=YES", "anon_mkdir_write_enable=YES", "anon_other_write_enable=YES",
		"anon_world_readable_only=NO", "anon_umask=077", "background=NO", "xferlog_enable=NO",
		"secure_email_list_enable=YES", "email_password_file=" + write("passwords", password),
		"secure_chroot_dir=" + t.TempDir(), "seccomp_sandbox=NO", "max_clients=500", "max_per_ip=500", "",
	}, "\n"))
	f.start(t)
	return f
}

// passable lets the server's user reach a directory of the test's.
func passable(t testing.TB, dir string) {
	t.Helper()
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *ftpd) start(t testing.TB) {
	t.Helper()
	f.cmd = exec.Command("vsftpd", f.config)
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	f.cmd.Env = append(os.Environ(), f.mark())
	f.cmd.Stdout, f.cmd.Stderr = os.Stderr, os.Stderr
	if err := helper.StartWithin(f.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.stop(t) })
	helper.Eventually(t, "vsftpd answers", func() bool { return answers(f.address) })
}

// mark is in the environment of the server and of its session processes.
func (f *ftpd) mark() string { return "FTPD=" + f.config }

// stop ends the server and its session processes. Each of these leads a session of its own, and
// holds the port that the next server needs.
func (f *ftpd) stop(t testing.TB) {
	t.Helper()
	_ = f.cmd.Process.Kill() // first, so that it starts no more; it may have ended by itself
	helper.Eventually(t, "no server listens any more", func() bool {
		for _, pid := range helper.With(f.mark()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return !answers(f.address)
	})
	if f.cmd.ProcessState == nil {
		_ = f.cmd.Wait() // it was killed
	}
}

func (f *ftpd) host(t testing.TB) *host { return f.hostBy(t, f.address) }

func (f *ftpd) hostBy(t testing.TB, address string) *host {
	h := newHost(t, "ftp://anonymous@"+address+"/locks")
	h.env = append(h.env, "ADLOCK_FTP_PASSWORD_FILE="+f.password)
	return h
}

// withLines starts the server again, with more lines in its configuration.
func (f *ftpd) withLines(t testing.TB, lines ...string) *ftpd {
	t.Helper()
	f.stop(t)
	config, err := os.ReadFile(f.config)
	if err == nil {
		err = os.WriteFile(f.config, append(config, strings.Join(lines, "\n")+"\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.start(t)
	return f
}

// withTLS starts the server again, with TLS and the certificate.
func (f *ftpd) withTLS(t testing.TB, cert, key string) *ftpd {
	t.Helper()
	return f.withLines(t, "ssl_enable=YES", "allow_anon_ssl=YES", "force_anon_data_ssl=YES", "force_anon_logins_ssl=YES",
		"rsa_cert_file="+cert, "rsa_private_key_file="+key)
}

// openFTP returns the store at the address, which may be that of a relay.
func openFTP(t testing.TB, address string) *ftp.Store {
	t.Helper()
	s, err := ftp.Open("ftp://anonymous@" + address + "/locks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func globbed(t testing.TB, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("nothing is called %s (%v)", pattern, err)
	}
	return found
}

func TestAnFTPLockWithoutARecordIsBusyForAMinute(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	bare := f.root + "/lock.p.shared.o.x.7"
	if err := errors.Join(os.Mkdir(bare, 0o777), os.Chmod(bare, 0o777)); err != nil {
		t.Fatal(err)
	}
	h.run(t, "echo ran").Denied(t)
	past := time.Now().Add(-time.Minute)
	if err := os.Chtimes(bare+"/seen", past, past); err != nil {
		t.Fatal(err)
	}
	if next := h.run(t, "echo $ADLOCK_FENCE"); next.Status != 0 || number(t, next.Out) != 8 {
		t.Errorf("%+v", next)
	}
	if left := globbed(t, f.root+"/l*"); len(left) != 2 {
		t.Errorf("what is left is not one generation and the last lock: %v", left)
	}
}

func TestFTPOwnerThatWasSlowIsNotPassedOnceItHasItsRecord(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	newcomer, slow := openFTP(t, f.address), openFTP(t, f.address)
	ctx := limited(t)
	held, seen, err := slow.Enter(ctx, "p.h.o.x", aRecord(t, false), time.Minute, true)
	if err != nil || seen.Held {
		t.Fatal(seen, err)
	}
	dir := f.root + "/lock.p.h.o.x.1"
	if err := os.Rename(dir+"/owner", dir+"/later"); err != nil {
		t.Fatal(err)
	}
	place, seen, err := newcomer.Enter(ctx, "p.h.o.x", aRecord(t, false), time.Minute, true)
	if err != nil || !seen.Bare {
		t.Fatal(seen, err)
	}
	if err := errors.Join(place.Pass(ctx, "", nil), os.Rename(dir+"/later", dir+"/owner")); err != nil {
		t.Fatal(err)
	}
	if seen, err := place.Look(ctx); err != nil || !seen.Held || seen.Bare {
		t.Errorf("%+v, %v", seen, err)
	}
	if err := held.Renew(ctx); err != nil {
		t.Error(err)
	}
}

func TestARefusalOfFTPIsReportedAsNotPermitted(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	write := func(password string, mode os.FileMode) string {
		file := t.TempDir() + "/password"
		if err := os.WriteFile(file, []byte(password), mode); err != nil {
			t.Fatal(err)
		}
		return "ADLOCK_FTP_PASSWORD_FILE=" + file
	}
	at := func(dir string) *host { return h.with("ADLOCK_STORE=ftp://anonymous@" + f.address + dir) }
	const missing = ": the directory is not there, or the user may not write to it: "
	for why, each := range map[string]struct {
		host  *host
		words string
	}{
		"no password": {
			h.with("ADLOCK_FTP_PASSWORD_FILE=", "HOME="+t.TempDir()),
			"no password for anonymous is in ~/.netrc, nor does ADLOCK_FTP_PASSWORD_FILE name a file with it: Login incorrect.",
		},
		"a wrong password":                    {h.with(write("guess\n", 0o600)), "wrong user or password: Login incorrect."},
		"a password that others may read":     {h.with(write(password, 0o644)), "may be read by others"},
		"no directory":                        {at("/lokcs"), "/lokcs" + missing},
		"root's own directory":                {at("/"), missing},
		"root's own directory without a word": {at(""), missing},
	} {
		t.Run(why, func(t *testing.T) { each.host.run(t, "echo ran").Refused(t, 77, each.words) })
	}
	// A dry run finds that the directory is missing without storing a file there.
	at("/lokcs").run(t, "", "--dry-run").Refused(t, 77, "is not there")
}

func TestSharedIsNotOfferedOnFTP(t *testing.T) {
	t.Parallel()
	startFTP(t, "").host(t).run(t, "echo ran", "--shared").Refused(t, 64, "not offered here")
}

func TestFTPUsesTLSWhereItIsOffered(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	h := startFTP(t, "").withTLS(t, cert, key).host(t)
	h.run(t, "echo ran").Refused(t, 69, "certificate")
	h = h.with("ADLOCK_FTP_CACERT=" + cert)
	h.run(t, "echo ran").Ran(t)
	h.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
}
