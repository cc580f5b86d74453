package main

import (
	"strings"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/lease"
	"adlock/lib/lease/etcd"
	"adlock/lib/lease/ftp"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
)

// open opens the store at the address, for atoms of the host. The runlog is that of the lock directory. If h is nil,
// the Locker writes nothing, neither in the store nor on this machine.
func open(address, host string, h *hook.Hook) (locker.Locker, error) {
	path, err := config.DirOf(address)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return openToRead(address, config.Lease())
	}
	return openIn(path, address, host, config.Lease(), h)
}

func openToRead(address, leaseAsked string) (*lease.Locker, error) {
	l, err := openToAsk(address, leaseAsked)
	if err != nil {
		return nil, err
	}
	if s, writes := l.Store.(interface{ OnlyRead() }); writes {
		s.OnlyRead()
	}
	return l, nil
}

// openToAsk opens the store without a recorder: openIn adds one, and so does clear.
func openToAsk(address, leaseAsked string) (*lease.Locker, error) {
	l := &lease.Locker{}
	if leaseAsked != "" {
		if err := config.LeaseLength(&l.Lease)(leaseAsked); err != nil {
			return nil, &fault.Error{Kind: fault.Usage, Object: "ADLOCK_LEASE", Err: err}
		}
	}
	scheme, _, _ := strings.Cut(address, "://")
	store, known := stores[scheme]
	if !known {
		return nil, config.NoStore(address)
	}
	var err error
	l.Store, err = store.open(address)
	return l, err
}

// stores has, for each of config.Schemes, the function that opens such a store, and the variables that name its files.
var stores = map[string]struct {
	open  func(address string) (lease.Store, error)
	files []string
}{
	"etcd": {func(address string) (lease.Store, error) { return etcd.Open(address) }, etcd.Files},
	"ftp":  {openFTP, ftp.Files},
	"ftps": {openFTP, ftp.Files},
}

func openFTP(address string) (lease.Store, error) { return ftp.Open(address) }

func openIn(path, address, host, leaseAsked string, h *hook.Hook) (*lease.Locker, error) {
	l, err := openToAsk(address, leaseAsked)
	if err != nil {
		return nil, err
	}
	if l.Recorder, err = recorderIn(path, atom.Canonify(host), h); err == nil {
		l.Log.Store = address
	}
	return l, err
}

// recorderIn returns the recorder of a host (a canonical name), and creates the lock directory at path.
func recorderIn(path, host string, h *hook.Hook) (locker.Recorder, error) {
	dir, err := lockfile.Create(path)
	if err != nil {
		return locker.Recorder{}, err
	}
	dir.Close()
	rec, err := config.RecorderOf(path, host, h)
	if err == nil {
		rec.Log.Dir, err = absolute(rec.Log.Dir) // for the watchdog, which runs in the root directory
	}
	return rec, err
}
