package etcd

import (
	"cmp"
	"crypto/tls"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"adlock/lib/fault"
	"adlock/lib/lease"
)

// Scheme begins the address of a cluster: etcd://HOST:PORT[,HOST:PORT…]/PREFIX.
const Scheme = "etcd://"

// Open returns the cluster at the address; the first question to it connects. User, password and
// certificates come from the environment variables of etcdctl(1), or the password from a file (passwordFile).
func Open(address string) (*Store, error) {
	hosts, prefix, _ := strings.Cut(strings.TrimPrefix(address, Scheme), "/")
	config := clientv3.Config{
		DialTimeout:          2 * time.Second,
		DialKeepAliveTime:    10 * time.Second, // the least that gRPC allows, to leave a hanging member soon
		DialKeepAliveTimeout: 2 * time.Second,
		Logger:               zap.NewNop(),
	}
	secure, err := security()
	if err != nil {
		return nil, err
	}
	scheme, over := "", insecure.NewCredentials()
	if secure != nil {
		scheme, over = "https://", credentials.NewTLS(secure)
	}
	members := strings.Split(hosts, ",")
	for _, host := range members {
		if !isMember(host) {
			return nil, fault.New(fault.Usage, withoutUser(address), "wants "+Scheme+"HOST:PORT[,HOST:PORT...]/PREFIX (the user goes into ETCDCTL_USER)")
		}
		config.Endpoints = append(config.Endpoints, scheme+host)
	}
	s := &Store{prefix: "/" + strings.Trim(prefix, "/"), address: address, reach: newReach(members), beats: map[string]stood{}}
	config.TLS = secure
	config.DialOptions = append(s.reach.options(over), grpc.WithChainUnaryInterceptor(s.checkAnswer), quickly)
	config.Username, config.Password, err = account()
	s.config = config
	return s, err
}

// account returns user and password. The file wins over a variable, which other processes can read.
func account() (user, password string, err error) {
	user, password, _ = strings.Cut(os.Getenv("ETCDCTL_USER"), ":")
	password = cmp.Or(os.Getenv("ETCDCTL_PASSWORD"), password)
	text, said, err := lease.Password(passwordFile)
	switch {
	case !said || err != nil:
		return user, password, err
	case user == "":
		return "", "", fault.New(fault.Usage, passwordFile, "has a password for no user: set ETCDCTL_USER")
	}
	return user, text, nil
}

const passwordFile = "ADLOCK_ETCD_PASSWORD_FILE"

// Files lists the environment variables that name files for this store.
var Files = []string{passwordFile, "ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY"}

// connect makes the client, unless it exists. With a password the client logs in at once; if the cluster is
// unreachable then, the next question connects again.
func (s *Store) connect() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		s.client, err = clientv3.New(s.config)
	}
	return s.wrap(err)
}

// quickly makes the client connect again at intervals that do not grow to gRPC's two minutes: a
// lease, or a newcomer's wait, may be over before that.
var quickly = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 2 * time.Second,
})

// withoutUser returns the address for messages: the part before a @ may hold a password.
func withoutUser(address string) string {
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		return Scheme + address[at+1:]
	}
	return address
}

// isMember reports whether the text is HOST:PORT. Without a port the client would try until its
// time is up, and report only that there was no answer.
func isMember(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || strings.ContainsAny(host, "@?#") {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func security() (*tls.Config, error) {
	info := transport.TLSInfo{
		TrustedCAFile:      os.Getenv("ETCDCTL_CACERT"),
		CertFile:           os.Getenv("ETCDCTL_CERT"),
		KeyFile:            os.Getenv("ETCDCTL_KEY"),
		InsecureSkipVerify: os.Getenv("ETCDCTL_INSECURE_SKIP_TLS_VERIFY") == "true",
	}
	asked := os.Getenv("ETCDCTL_INSECURE_TRANSPORT") == "false"
	if info.Empty() && info.TrustedCAFile == "" && !info.InsecureSkipVerify && !asked {
		return nil, nil
	}
	if err := readable("ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY"); err != nil {
		return nil, err
	}
	if (info.CertFile == "") != (info.KeyFile == "") {
		return nil, fault.New(fault.Usage, "ETCDCTL_CERT, ETCDCTL_KEY", "only one of them is set, and a certificate goes with its key")
	}
	if info.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(info.CertFile, info.KeyFile); err != nil {
			reason := strings.TrimPrefix(err.Error(), "tls: ")
			return nil, fault.New(fault.Usage, info.CertFile, "is no certificate for the key "+info.KeyFile+": "+reason)
		}
	}
	config, err := info.ClientConfig()
	if err != nil {
		return nil, &fault.Error{Kind: fault.Usage, Object: info.TrustedCAFile, Err: err}
	}
	return config, nil
}
