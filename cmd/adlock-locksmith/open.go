package main

import (
	"os"
	"strings"
	"time"

	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/store"
	"adlock/lib/store/etcd"
	"adlock/lib/store/ftp"
)

// shortestLease leaves KILL its second in each part of the lease.
const shortestLease = 6 * time.Second

// open opens the store at the address, for atoms of the host; the record is kept
// where that of the lock directory is.
func open(address, host string) (command.Locker, error) {
	path, err := lock.DefaultDir()
	if err != nil {
		return nil, err
	}
	return openIn(path, address, host, os.Getenv("ADLOCK_LEASE"))
}

func openIn(path, address, host, leaseAsked string) (*store.Locksmith, error) {
	lease, err := parseLease(leaseAsked)
	if err != nil {
		return nil, err
	}
	dir, err := lock.Create(path)
	if err != nil {
		return nil, err
	}
	dir.Close()
	log, err := command.RunlogOf(path, name.Canonify(host))
	if err != nil {
		return nil, err
	}
	s, err := openStore(address)
	if err != nil {
		return nil, err
	}
	return &store.Locksmith{Store: s, Log: log, Lease: lease}, nil
}

func openStore(address string) (store.Store, error) {
	switch {
	case strings.HasPrefix(address, etcd.Scheme):
		return etcd.Open(address)
	case strings.HasPrefix(address, ftp.Scheme), strings.HasPrefix(address, ftp.SecureScheme):
		return ftp.Open(address)
	}
	return nil, exit.New(exit.Usage, address, "is no store: want etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR")
}

// parseLease reads ADLOCK_LEASE.
func parseLease(text string) (time.Duration, error) {
	if text == "" {
		return store.DefaultLease, nil
	}
	lease, err := limit.Parse(text)
	if err == nil && (lease < shortestLease || lease > time.Hour) {
		err = exit.New(exit.Usage, text, "want at least 6s and at most 1h")
	}
	if err != nil {
		return 0, &exit.Error{Code: exit.Usage, Object: "ADLOCK_LEASE", Err: err}
	}
	return lease, nil
}
