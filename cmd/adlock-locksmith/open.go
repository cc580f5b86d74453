package main

import (
	"strings"
	"time"

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

// open opens the store at the address, for atoms of the host. The runlog is that of the lock
// directory.
func open(address, host string, h *hook.Hook) (locker.Locker, error) {
	path, err := config.DirOf(address)
	if err != nil {
		return nil, err
	}
	length := config.Lease()
	if h == nil {
		return openToRead(address, length)
	}
	return openIn(path, address, host, length, h)
}

// openToRead opens the store for reading. It writes nothing, neither there nor on this machine.
func openToRead(address, leaseAsked string) (*lease.Locker, error) {
	length, err := parseLease(leaseAsked)
	if err != nil {
		return nil, err
	}
	l, err := lockerOf(address, length)
	if err != nil {
		return nil, err
	}
	if s, writes := l.Store.(interface{ OnlyRead() }); writes {
		s.OnlyRead()
	}
	return l, nil
}

func lockerOf(address string, length time.Duration) (*lease.Locker, error) {
	scheme, _, _ := strings.Cut(address, "://")
	open, known := stores[scheme]
	if !known {
		return nil, config.NoStore(address)
	}
	s, err := open(address)
	return &lease.Locker{Store: s, Lease: length}, err
}

// stores has a row for each of config.Schemes.
var stores = map[string]func(address string) (lease.Store, error){
	"etcd": func(address string) (lease.Store, error) { return etcd.Open(address) },
	"ftp":  func(address string) (lease.Store, error) { return ftp.Open(address) },
	"ftps": func(address string) (lease.Store, error) { return ftp.Open(address) },
}

func openIn(path, address, host, leaseAsked string, h *hook.Hook) (*lease.Locker, error) {
	length, err := parseLease(leaseAsked)
	if err != nil {
		return nil, err
	}
	rec, err := recorderIn(path, atom.Canonify(host), h)
	if err != nil {
		return nil, err
	}
	l, err := lockerOf(address, length)
	if err == nil {
		rec.Log.Store = address
		l.Recorder = rec
	}
	return l, err
}

// recorderIn is the recorder of a host, whose name is canonical already, in the lock
// directory at path.
func recorderIn(path, host string, h *hook.Hook) (locker.Recorder, error) {
	dir, err := lockfile.Create(path)
	if err != nil {
		return locker.Recorder{}, err
	}
	dir.Close()
	log, err := config.RunlogOf(path, host)
	return locker.Recorder{Log: log, Hook: h}, err
}

func parseLease(text string) (time.Duration, error) {
	length := lease.DefaultLease
	if text == "" {
		return length, nil
	}
	if err := config.LeaseLength(&length)(text); err != nil {
		return 0, &fault.Error{Kind: fault.Usage, Object: "ADLOCK_LEASE", Err: err}
	}
	return length, nil
}
