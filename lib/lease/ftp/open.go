package ftp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"adlock/lib/fault"
	"adlock/lib/lease"
)

type account struct {
	address        string // as it was given
	host, dir      string
	user, password string
	secure         bool // TLS is required
	config         *tls.Config
}

// Open reads the address, ftp://USER@HOST[:PORT]/DIR, which uses TLS if the server offers it, or ftps://..., which
// requires TLS. The store connects when it is first used. DIR is below the login directory; two slashes make it absolute.
// The password comes from the file that ADLOCK_FTP_PASSWORD_FILE names, else from ~/.netrc; a file that other users may
// access is refused. Certificates are checked against the system's authorities, or those that ADLOCK_FTP_CACERT names.
func Open(address string) (*Store, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fault.New(fault.Usage, "store", "is no address: want ftp://USER@HOST/DIR")
	case u.User != nil && hasPassword(u):
		u.User = url.User(u.User.Username())
		return nil, fault.New(fault.Usage, u.String(), "a password in an address is visible to other users: put it into ~/.netrc")
	case u.Hostname() == "" || u.User.Username() == "":
		return nil, fault.New(fault.Usage, address, "wants ftp://USER@HOST/DIR")
	}
	a := account{
		address: address, host: u.Host, user: u.User.Username(), secure: u.Scheme == "ftps",
		dir: cmp.Or(strings.TrimPrefix(u.Path, "/"), "."),
	}
	if u.Port() == "" {
		a.host = net.JoinHostPort(u.Hostname(), "21")
	}
	if a.password, err = password(u.Hostname(), a.user); err != nil {
		return nil, err
	}
	a.config, err = tlsConfig(u.Hostname())
	return &Store{account: a, turn: make(chan struct{}, 1), seen: map[string]watch{}}, err
}

const (
	passwordFile = "ADLOCK_FTP_PASSWORD_FILE"
	authorities  = "ADLOCK_FTP_CACERT"
)

// Files lists the environment variables that name files for this store.
var Files = []string{passwordFile, authorities}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	return has
}

func tlsConfig(host string) (*tls.Config, error) {
	// Some servers require that the data connections resume the TLS session of the control connection,
	// as a proof that both are the same client's.
	config := &tls.Config{ServerName: host, ClientSessionCache: tls.NewLRUClientSessionCache(8), MinVersion: tls.VersionTLS12}
	file := os.Getenv(authorities)
	if file == "" {
		return config, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, lease.Unreadable(file, authorities, err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, lease.NoCertificate(file)
	}
	return config, nil
}

// password reads the password from a file ("": none), as other processes can read command lines and environments.
func password(host, user string) (string, error) {
	if text, said, err := lease.Password(passwordFile); said {
		return text, err
	}
	home := os.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", nil
	}
	text, err := lease.ReadSecret(filepath.Join(home, ".netrc"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return netrc(text, host, user), err
}

// netrc returns the password for the user at the host (netrc(5)); "" if there is none.
func netrc(text, host, user string) string {
	words := strings.Fields(text)
	here, who := false, ""
	for i := 0; i < len(words); i++ {
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		switch words[i] {
		case "machine":
			here, who = value == host, ""
			i++
		case "default":
			here, who = true, ""
		case "login":
			who = value
			i++
		case "password":
			if here && (who == "" || who == user) {
				return value
			}
			i++
		}
	}
	return ""
}
