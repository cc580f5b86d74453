package etcd

import (
	"crypto/tls"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"adlock/lib/exit"
)

// Scheme begins the address of a cluster: etcd://HOST:PORT[,HOST:PORT…]/PREFIX.
const Scheme = "etcd://"

// Open makes a client of the cluster at the address; it connects when it is
// used. User, password and certificates come from the environment, from the
// variables that etcdctl(1) reads.
func Open(address string) (*Store, error) {
	hosts, prefix, _ := strings.Cut(strings.TrimPrefix(address, Scheme), "/")
	config := clientv3.Config{
		DialTimeout:          2 * time.Second,
		DialKeepAliveTime:    2 * time.Second, // as etcdctl: a member that hangs is left for another
		DialKeepAliveTimeout: 2 * time.Second,
		Logger:               zap.NewNop(),
	}
	secure, err := security()
	if err != nil {
		return nil, &exit.Error{Code: exit.Usage, Object: address, Err: err}
	}
	config.TLS = secure
	for _, host := range strings.Split(hosts, ",") {
		if host == "" || strings.ContainsAny(host, "@?#") {
			return nil, exit.New(exit.Usage, address, "wants "+Scheme+"HOST:PORT[,HOST:PORT...]/PREFIX (the user goes into ETCDCTL_USER)")
		}
		if secure != nil {
			host = "https://" + host
		}
		config.Endpoints = append(config.Endpoints, host)
	}
	config.Username, config.Password, _ = strings.Cut(os.Getenv("ETCDCTL_USER"), ":")
	if password := os.Getenv("ETCDCTL_PASSWORD"); password != "" {
		config.Password = password
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, exit.New(exit.Unavailable, address, err.Error())
	}
	return &Store{client: client, prefix: "/" + strings.Trim(prefix, "/"), address: address}, nil
}

// security returns nil where nothing asks for TLS.
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
	return info.ClientConfig()
}
