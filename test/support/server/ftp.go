package server

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// Secret is the password of all FTP servers.
const Secret = "secret\n"

// FTP is a vsftpd whose one account is anonymous.
type FTP struct {
	Address  string // HOST:PORT
	Root     string // the directory that clients call /locks, or as it is called
	Password string // the file that holds it
	config   string
	cmd      *exec.Cmd
}

// StartFTP starts a vsftpd that keeps its files in a directory of the test, or in root.
func StartFTP(t testing.TB, address, root string) *FTP {
	t.Helper()
	need.Tools(t, "vsftpd")
	need.Root(t) // vsftpd becomes another user for each session
	account, err := user.Lookup("ftp")
	if err != nil {
		need.Skip(t, "there is no user ftp, as whom vsftpd serves")
	}
	f := &FTP{Address: address, Root: root}
	base := t.TempDir()
	passable(t, base)
	if root == "" {
		f.Root = base + "/root/locks"
		if err := os.MkdirAll(f.Root, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	passable(t, filepath.Dir(f.Root))
	uid, _ := strconv.Atoi(account.Uid)
	if err := os.Chown(f.Root, uid, -1); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		if err := os.WriteFile(base+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return base + "/" + name
	}
	f.Password = write("password", Secret)
	host, port, _ := strings.Cut(f.Address, ":")
	f.config = write("vsftpd.conf", strings.Join([]string{
		"listen=YES", "listen_ipv6=NO", "listen_address=" + host, "listen_port=" + port,
		"anonymous_enable=YES", "local_enable=NO", "write_enable=YES", "anon_root=" + filepath.Dir(f.Root),
		"anon_upload_enable=YES", "anon_mkdir_write_enable=YES", "anon_other_write_enable=YES",
		"anon_world_readable_only=NO", "anon_umask=077", "background=NO", "xferlog_enable=NO",
		"secure_email_list_enable=YES", "email_password_file=" + write("passwords", Secret),
		"secure_chroot_dir=" + t.TempDir(), "seccomp_sandbox=NO", "max_clients=500", "max_per_ip=500", "",
	}, "\n"))
	f.Start(t)
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

// Start starts the server, and returns when it answers.
func (f *FTP) Start(t testing.TB) {
	t.Helper()
	f.cmd = exec.Command("vsftpd", f.config)
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	f.cmd.Env = append(os.Environ(), f.mark())
	f.cmd.Stdout, f.cmd.Stderr = os.Stderr, os.Stderr
	if err := helper.StartWithin(f.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Stop(t) })
	helper.Eventually(t, "vsftpd answers", func() bool { return answers(f.Address) })
}

// mark is in the environment of the server and of its session processes.
func (f *FTP) mark() string { return "FTPD=" + f.config }

// Stop ends the server and its session processes. Each of these leads a session of its own, and
// holds the port that the next server needs.
func (f *FTP) Stop(t testing.TB) {
	t.Helper()
	_ = f.cmd.Process.Kill() // first, so that it starts no more; it may have ended by itself
	helper.Eventually(t, "no server listens any more", func() bool {
		f.Signal(t, syscall.SIGKILL)
		return !answers(f.Address)
	})
	if f.cmd.ProcessState == nil {
		_ = f.cmd.Wait() // it was killed
	}
}

// Signal sends the signal to the server and its session processes.
func (f *FTP) Signal(_ testing.TB, sig syscall.Signal) {
	for range 2 { // the server may have started another process meanwhile
		for _, pid := range helper.With(f.mark()) {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
}

// Configure starts the server again, with more lines in its configuration.
func (f *FTP) Configure(t testing.TB, lines ...string) {
	t.Helper()
	f.Stop(t)
	config, err := os.ReadFile(f.config)
	if err == nil {
		err = os.WriteFile(f.config, append(config, strings.Join(lines, "\n")+"\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Start(t)
}
