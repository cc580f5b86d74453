package config

import (
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// IsRemote reports whether a store is an address (it has "://"), not a directory.
func IsRemote(store string) bool { return strings.Contains(store, "://") }

var Schemes = []string{"etcd", "ftp", "ftps"} // the URL schemes of the stores that adlock-locksmith opens

const storeForms = "etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR"

// isMistyped reports whether a store is an address without its "//", such as etcd:HOST.
func isMistyped(store string) bool {
	scheme, _, is := strings.Cut(store, ":")
	return is && slices.Contains(Schemes, scheme) && !IsRemote(store)
}

// isAddress reports whether a store has the parts of storeForms.
func isAddress(store string) bool {
	scheme, rest, _ := strings.Cut(store, "://")
	first, host, hasUser := strings.Cut(strings.SplitN(rest, "/", 2)[0], "@")
	return slices.Contains(Schemes, scheme) && first != "" && (host != "") == hasUser && hasUser == (scheme != "etcd") && hasUser != strings.Contains(first, ":")
}

// StoreOption is the option --store of verbs that acquire no lock. It sets ADLOCK_STORE, also for a partner program.
func StoreOption() Option {
	return Bind("store", func(value string) error {
		if value == "" {
			return errors.New("must not be empty")
		}
		return os.Setenv(storeVariable, value)
	})
}

// NoStore is the error for a store that is neither a directory nor an address of one of the Schemes.
func NoStore(store string) error {
	return fault.New(fault.Usage, store, "is no store: want a directory, "+storeForms)
}

// Store returns $ADLOCK_STORE, else the store that the settings files set; "" if there is none.
func Store() (string, error) {
	store, err := head(storeVariable)
	return store.Value, err
}

// Lease returns $ADLOCK_LEASE, else the lease that the settings files set, unparsed; "" if there is none.
func Lease() string {
	lease, _ := head(leaseVariable) // head fails only for a Location
	return lease.Value
}

// Dir returns the lock directory: DirOf the Store.
func Dir() (string, error) {
	store, err := Store()
	if err != nil {
		return "", err
	}
	return DirOf(store)
}

// DirOf returns the lock directory of a store: the store itself, if it is a directory. For "" and for a remote
// store it is $ADLOCK_DIR, else the directory that the settings files set, else the user's own (ownDir). A
// mistyped address is an error. XDG_STATE_HOME is not read: cron lacks it, so one job would get two directories.
func DirOf(store string) (string, error) {
	if isMistyped(store) {
		return "", NoStore(store)
	}
	if store != "" && !IsRemote(store) {
		return Trim(store), nil
	}
	return usualDir(os.Geteuid())
}

// Trim removes slashes and /. from the end of a path: with them, the kernel would follow a link there.
func Trim(path string) string {
	switch short := strings.TrimRight(strings.TrimSuffix(path, "/."), "/"); short {
	case path:
		return path
	case "":
		return "/"
	default:
		return Trim(short)
	}
}

func usualDir(uid int) (string, error) {
	if dir, err := head(dirVariable); err != nil || dir.Value != "" {
		return Trim(dir.Value), err
	}
	return ownDir(uid)
}

func ownDir(uid int) (string, error) {
	if dir := UserDir(uid); uid == 0 || IsUsers(dir, uid) {
		return dir, nil
	}
	home := os.Getenv("HOME")
	if !path.IsAbs(home) {
		return "", fault.New(fault.Unavailable, "ADLOCK_DIR", "is not set, and HOME is no absolute path ("+wayOut(uid)+")")
	}
	return DirOfHome(home), nil
}

var rootsDir = "/var/lib/adlock" // tests change it

// UserDir returns root's lock directory, or the one that `adlock init` makes for a user without a home.
func UserDir(uid int) string {
	if uid == 0 {
		return rootsDir
	}
	return rootsDir + "-" + strconv.Itoa(uid)
}

// UsersWithDir returns the users, except root, for whose UserDir there is an entry. It does not stat an entry: in a
// file system that hangs, stat does not return. adlock-report checks each by IsUsers in doAs, with a time limit.
func UsersWithDir() (uids []int) {
	entries, _ := os.ReadDir(path.Dir(rootsDir)) // if it cannot be read, there are none
	for _, entry := range entries {
		dir := path.Join(path.Dir(rootsDir), entry.Name())
		uid, err := strconv.Atoi(strings.TrimPrefix(dir, rootsDir+"-"))
		if err == nil && uid > 0 && dir == UserDir(uid) {
			uids = append(uids, uid)
		}
	}
	return uids
}

const afterBoot = "is empty after a boot: when a job ran last is forgotten"

// fleeting lists directories that lose files at a boot or, if cleaned is set, while jobs run; the first match counts.
var fleeting = []struct {
	dir, why string
	cleaned  bool
}{
	{"/run/user", "is removed when its user logs out, under running jobs: then a second one starts", true},
	{"/tmp", "is cleaned, also under running jobs: then a second one starts", true},
	{"/var/tmp", "is cleaned, also under running jobs: then a second one starts", true},
	{"/run", afterBoot, false},
	{"/var/run", afterBoot, false},
	{"/var/lock", afterBoot, false},
	{"/dev/shm", afterBoot, false},
}

// Fleeting returns why locks in a directory do not last; "" if its path gives no reason.
func Fleeting(dir string) string {
	why, _ := fleetingAt(dir)
	return why
}

// Cleaned returns why a locked file may be removed while jobs run; "" if its path gives no reason.
func Cleaned(file string) string {
	if why, cleaned := fleetingAt(file); cleaned {
		return why
	}
	return ""
}

func fleetingAt(file string) (why string, cleaned bool) {
	for _, place := range fleeting {
		if strings.HasPrefix(path.Clean(file)+"/", place.dir+"/") {
			return place.dir + " " + place.why, place.cleaned
		}
	}
	return "", false
}

// IsUsers reports whether dir is a directory, not a link to one, that belongs to that user.
func IsUsers(dir string, uid int) bool {
	var st unix.Stat_t
	return sysfile.Lstatat(unix.AT_FDCWD, dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == uid
}

// DirElsewhere returns the lock directory in the user's home of passwd(5), if $HOME is another directory and dir is
// the lock directory in $HOME; else "".
func DirElsewhere(dir string) string {
	home, known := sysfile.HomeOf(os.Geteuid())
	if !known || home == os.Getenv("HOME") || dir != DirOfHome(os.Getenv("HOME")) {
		return ""
	}
	return DirOfHome(home)
}

// WayOut is the advice to a user who cannot use the lock directory at path.
func WayOut(path string) string {
	uid, home := os.Geteuid(), os.Getenv("HOME")
	if uid == 0 || !inPod(uid, true) && (os.Getenv("ADLOCK_DIR") != "" || path != DirOfHome(home)) {
		return "name one of your own: ADLOCK_DIR"
	}
	return wayOut(uid)
}

// wayOut is the advice to a user without a usable HOME (www-data). In a pod no root can run `adlock init`.
func wayOut(uid int) string {
	own, known := sysfile.HomeOf(uid)
	if inPod(uid, known) {
		return "in a pod: ADLOCK_DIR=/dev/shm/adlock, or a volume as CONTAINERS in adlock(7) has it"
	}
	name := sysfile.UserName(uid)
	if known && own != os.Getenv("HOME") && IsUsers(own, uid) {
		return "HOME is not that of " + name + ": set HOME=" + own + ", or as root: adlock init " + name
	}
	return "as root: adlock init " + name
}

// inPod guesses that this process is in a pod: its user is not root, and is not in passwd(5), or the group is 0, or a
// variable of Kubernetes is set.
func inPod(uid int, known bool) bool {
	return uid != 0 && (!known || os.Getegid() == 0 || os.Getenv("KUBERNETES_SERVICE_HOST") != "")
}

func DirOfHome(home string) string { return path.Join(home, ".local/state/adlock") }

// RunlogDir returns the directory of the runlogs: the one that ADLOCK_LOGDIR sets, else the lock directory.
func RunlogDir() (string, error) {
	if elsewhere, err := head(logDirVariable); err != nil || elsewhere.Value != "" {
		return Trim(elsewhere.Value), err
	}
	return Dir()
}
