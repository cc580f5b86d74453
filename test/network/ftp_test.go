package network

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/lease/ftp"
	"adlock/test/support/must"
	"adlock/test/support/relay"
	"adlock/test/support/server"
)

// ftpd is an FTP server.
type ftpd struct{ *server.FTP }

// startFTP starts a server that keeps its files in a directory of the test, or in dir.
func startFTP(t testing.TB, dir string) *ftpd {
	t.Helper()
	return &ftpd{server.StartFTP(t, freePort(t), dir)}
}

func (f *ftpd) host(t testing.TB) *host { return f.hostBy(t, f.Address) }

func (f *ftpd) hostBy(t testing.TB, address string) *host {
	h := newHost(t, "ftp://anonymous@"+address+"/locks")
	h.env = append(h.env, "ADLOCK_FTP_PASSWORD_FILE="+f.Password)
	return h
}

// withLines starts the server again, with more lines in its configuration.
func (f *ftpd) withLines(t testing.TB, lines ...string) *ftpd {
	t.Helper()
	f.Configure(t, lines...)
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
	s := must.Get(ftp.Open("ftp://anonymous@" + address + "/locks"))(t)
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

func TestASlowFTPOwnerIsNotPassedOnceItsRecordIsThere(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	ctx := limited(t)
	slow := enter(t, openFTP(t, f.Address), false, false, lasts)
	dir := f.Root + "/lock.p.h.o.x.1"
	must.Do(t, os.Rename(dir+"/owner", dir+"/later"))
	place, seen, err := openFTP(t, f.Address).Enter(ctx, "p.h.o.x", aRecord(t, false), true)
	if err != nil || !seen.Bare {
		t.Fatal(seen, err)
	}
	must.Do(t, errors.Join(place.Pass(ctx, "", nil), os.Rename(dir+"/later", dir+"/owner")))
	if seen, err := place.Look(ctx); err != nil || !seen.Held || seen.Bare {
		t.Errorf("%+v, %v", seen, err)
	}
	must.Do(t, slow.Renew(ctx))
}

// The creator of the slot was killed before it had stored its record.
func TestAnFTPSlotWithoutARecordIsPassedAfterAMinute(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h, slot := f.host(t), f.Root+"/lock.p.shared.slot-1.1"
	must.Do(t, errors.Join(os.Mkdir(slot, 0o777), os.Chmod(slot, 0o777)))
	h.run(t, "echo ran", "--slots=1").Denied(t)
	must.Do(t, os.Chtimes(slot+"/seen", time.Time{}, time.Now().Add(-time.Hour)))
	h.run(t, "", "--slots=1", "--dry-run").Is(t, 0, "…", "…")
	h.run(t, "echo ran", "--slots=1").Ran(t)
}

func TestAWrongFTPLoginOrDirectoryIsReportedAsNotPermitted(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	write := func(password string, mode os.FileMode) string {
		file := t.TempDir() + "/password"
		must.Do(t, os.WriteFile(file, []byte(password), mode))
		return "ADLOCK_FTP_PASSWORD_FILE=" + file
	}
	at := func(dir string) *host { return h.with("ADLOCK_STORE=ftp://anonymous@" + f.Address + dir) }
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
		"a password that others may read":     {h.with(write(server.Secret, 0o644)), "may be read by others"},
		"no directory":                        {at("/lokcs"), "/lokcs" + missing},
		"root's own directory":                {at("/"), missing},
		"root's own directory without a word": {at(""), missing},
	} {
		t.Run(why, func(t *testing.T) { each.host.run(t, "echo ran").Refused(t, 77, each.words) })
	}
	// A dry run finds that the directory is missing without storing a file there.
	at("/lokcs").run(t, "", "--dry-run").Refused(t, 77, "is not there")
}

func TestReadersAndTicksAreRefusedOnFTP(t *testing.T) {
	t.Parallel()
	h := startFTP(t, "").host(t)
	h.run(t, "echo ran", "--shared").Refused(t, 64, "many readers at once are not offered here")
	for _, mode := range []string{"--verbose", "--dry-run", "--wait=forever"} {
		h.run(t, "echo ran", "--once-per=1h", mode).Refused(t, 64, "ticks (--once-per) are not offered here")
	}
	h.run(t, "echo ran").Ran(t)
}

func TestFTPUsesTLSIfTheServerOffersIt(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	h := startFTP(t, "").withTLS(t, cert, key).host(t)
	h.run(t, "echo ran").Refused(t, 69, "certificate")
	h = h.with("ADLOCK_FTP_CACERT=" + cert)
	h.run(t, "echo ran").Ran(t)
	h.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
}

// If a server keeps a file under another name, newcomers do not find the lock.
func TestNothingRunsOnAnFTPServerThatChangesNames(t *testing.T) {
	t.Parallel()
	for lie, rename := range map[string]func(name string) string{
		"it lowers case":                strings.ToLower,
		"it cuts names at 30 bytes":     func(name string) string { return name[:min(len(name), 30)] },
		"it cuts heartbeat names alone": func(name string) string { return name[:min(len(name), 38)] },
		"it has names of eight letters": func(name string) string { return name[:min(len(name), 8)] },
	} {
		t.Run(lie, func(t *testing.T) {
			f := startFTP(t, "")
			p := relay.NewTeller(t, "127.0.0.1", f.Address)
			p.Set(func() { p.Named = rename })
			h := f.hostBy(t, p.Address())
			for _, wait := range []string{"0", "forever"} { // no wait helps
				h.run(t, "echo ran", "--operand=Upper", "--wait="+wait).Refused(t, 69, "does not list ")
			}
			if left, err := filepath.Glob(f.Root + "/lock.*"); len(left) > 0 || err != nil {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestNothingRunsOnAnFTPServerThatOnlyClaimsToMakeDirectories(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	p := relay.NewTeller(t, "127.0.0.1", f.Address)
	h := f.hostBy(t, p.Address())
	p.Answers("MKD locks/lock.", `257 "/lock." was made`)
	h.run(t, "echo ran").Refused(t, 69, "does not list locks/lock.")
	p.Set(func() { p.Answer = nil })
	h.run(t, "echo ran").Ran(t) // nothing was left
}

// MKD is the test-and-set. Two newcomers have found the atom free, and the server reports success
// to both: the second finds the first one's record, and gives up.
func TestAnAtomHasOneOwnerIfMKDSucceedsTwice(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	p := relay.NewTeller(t, "127.0.0.1", f.Address)
	ctx := limited(t)
	var owner *waiter
	p.Set(func() {
		p.Answer = func(command string) string {
			if command != "MKD locks/lock.p.h.o.x.1" {
				return ""
			}
			owner = enter(t, openFTP(t, f.Address), false, false, lasts)
			return `257 "/lock.p.h.o.x.1" was made`
		}
	})
	_, seen, err := openFTP(t, p.Address()).Enter(ctx, "p.h.o.x", aRecord(t, false), true)
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "answers MKD of ") {
		t.Errorf("the second: %+v, %v", seen, err)
	}
	if owner == nil {
		t.Fatal("there is no first")
	}
	must.Do(t, owner.Renew(ctx))
	if left := globbed(t, f.Root+"/lock.p.h.o.x.1/*"); len(left) != 2 {
		t.Errorf("besides the owner's record and its beat: %v", left)
	}
	if seen, err := openFTP(t, f.Address).Look(ctx, "p.h.o.x", false); err != nil || !seen.Held || seen.Bare {
		t.Errorf("%+v, %v", seen, err)
	}
}
