package network

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/lease"
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

// needFTP skips the test if vsftpd cannot run here, and returns the user that it serves as.
func needFTP(t testing.TB) *user.User {
	t.Helper()
	need.Tools(t, "vsftpd")
	need.Root(t) // vsftpd becomes another user for each session
	account, err := user.Lookup("ftp")
	if err != nil {
		need.Skip(t, "there is no user ftp, as whom vsftpd serves")
	}
	return account
}

func startFTPAt(t testing.TB, address, dir string) *ftpd {
	t.Helper()
	account := needFTP(t)
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

func TestAtomIsOneAcrossHostsOnFTP(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	a, b := f.host(t), f.host(t)
	first := a.run(t, "echo $ADLOCK_FENCE")
	if first.Status != 0 || first.Err != "" || number(t, first.Out) != 1 {
		t.Fatalf("%+v", first)
	}
	b.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
	owner := a.start(t, "sleep 60")
	b.run(t, "echo ran").Denied(t)
	waited := b.command("echo $ADLOCK_FENCE", "--wait=60s").Start(t)
	owner.Signal(t, syscall.SIGTERM)
	if status := owner.Wait(t); status != 143 || owner.Output() != "" {
		t.Errorf("the owner's status is %d: %s", status, owner.Output())
	}
	if status := waited.Wait(t); status != 0 || number(t, waited.Output()) != 3 {
		t.Errorf("the one that waited: %d %s", status, waited.Output())
	}
	if left, _ := filepath.Glob(f.root + "/l*"); len(left) != 2 {
		t.Errorf("what is left is not one generation and the last lock: %v", left)
	}
}

func TestExpiredOwnerOnFTPIsAskedToEndItsJob(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	a, b := f.host(t), f.host(t)
	owner := a.start(t, "sleep 60")
	helper.Eventually(t, "it has expired", func() bool {
		return strings.HasPrefix(b.run(t, "", "--expire-after=3s", "--dry-run").Out, "expired: ")
	})
	b.run(t, "echo ran", "--expire-after=3s", "--pause=30s").Ran(t) // the job dies of the first signal
	if status := owner.Wait(t); status != 130 {
		t.Errorf("the owner's status is %d: %s", status, owner.Output())
	}
}

func TestAMissingOrReadOnlyDirectoryOnFTPIsReported(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	for _, dir := range []string{"/lokcs", "/", ""} { // the last two are root's own
		h.env = append(h.env, "ADLOCK_STORE=ftp://anonymous@"+f.address+dir)
		r := h.run(t, "echo ran")
		if r.Status != 77 || r.Out != "" || !strings.Contains(r.Err, ": the directory is not there, or the user may not write to it: ") {
			t.Errorf("%q: %+v", dir, r)
		}
	}
}

func TestOwnerCutOffFromFTPEndsItsJobBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	cable := newRelay(t, f.address)
	a, b := f.hostBy(t, cable.address()).leased(lease.DefaultLease), f.host(t).leased(lease.DefaultLease)
	file := t.TempDir() + "/beats"
	owner := a.beats(t, file)
	cable.cut()
	next := b.run(t, begins, "--wait=60s")
	if next.Status != 0 {
		t.Fatalf("%+v\n%s", next, owner.Output())
	}
	t.Logf("cut off from FTP: margin %v", margin(t, file, next.Out))
	owner.Wait(t)
}

func TestFTPLockWithoutARecordIsBusyForAMinute(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	bare := f.root + "/lock.p.shared.o.x.7"
	if err := os.Mkdir(bare, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(bare, 0o777); err != nil {
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
}

func TestFTPOwnerThatWasSlowIsNotPassedOnceItHasItsRecord(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	newcomer, slow := openFTP(t, f), openFTP(t, f)
	ctx, cancel := context.WithTimeout(context.Background(), helper.Patience)
	defer cancel()
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
	if err := place.Pass(ctx, "", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+"/later", dir+"/owner"); err != nil {
		t.Fatal(err)
	}
	if seen, err := place.Look(ctx); err != nil || !seen.Held || seen.Bare {
		t.Errorf("%+v, %v", seen, err)
	}
	if err := held.Renew(ctx); err != nil {
		t.Error(err)
	}
}

func openFTP(t testing.TB, f *ftpd) *ftp.Store {
	t.Helper()
	return openFTPAt(t, f.address)
}

// openFTPAt is openFTP through a relay.
func openFTPAt(t testing.TB, address string) *ftp.Store {
	t.Helper()
	s, err := ftp.Open("ftp://anonymous@" + address + "/locks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestWrongPasswordRunsNothing(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	if err := os.WriteFile(f.password, []byte("guess\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t, "echo ran").Refused(t, 77, "ftp://")
	if err := os.Chmod(f.password, 0o644); err != nil {
		t.Fatal(err)
	}
	h.run(t, "echo ran").Refused(t, 77, "may be read by others")
}

func TestSharedIsNotOfferedOnFTP(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	f.host(t).run(t, "echo ran", "--shared").Refused(t, 64, "not offered here")
}

func TestFTPUsesTLSWhereItIsOffered(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	f.stop(t)
	cert, key := certificate(t)
	addLine(t, f.config, "ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_data_ssl=YES\nforce_anon_logins_ssl=YES\n"+
		"rsa_cert_file="+cert+"\nrsa_private_key_file="+key+"\n")
	f.start(t)
	h := f.host(t)
	h.run(t, "echo ran").Refused(t, 69, "certificate")
	h.env = append(h.env, "ADLOCK_FTP_CACERT="+cert)
	h.run(t, "echo ran").Ran(t)
	h.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
}

func addLine(t testing.TB, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func globbed(t testing.TB, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("nothing is called %s (%v)", pattern, err)
	}
	return found
}
