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

// IsRemote reports whether a store is an address beyond this machine; else it is a lock
// directory, or empty for the usual one.
func IsRemote(store string) bool { return strings.Contains(store, "://") }

// isMistyped reports whether a store is an address without its slashes.
func isMistyped(store string) bool {
	scheme, _, _ := strings.Cut(store, ":")
	return strings.HasPrefix(store, scheme+":") && slices.Contains([]string{"etcd", "ftp", "ftps"}, scheme) && !IsRemote(store)
}

// StoreOption is --store of the verbs that show locks: like ADLOCK_STORE, it tells this process,
// and the partner programs that it starts, where those are.
func StoreOption() Option {
	return Option{
		Name: "store", Env: storeVariable, Arg: "URL", Help: StoreHelp,
		Set: func(value string) error {
			if value == "" {
				return errors.New("must not be empty")
			}
			return os.Setenv(storeVariable, value)
		},
	}
}

const storeVariable = "ADLOCK_STORE"

// StoreHelp is the help for --store.
const StoreHelp = "where the locks are: a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR"

// NoStore is the error of a store that is neither a directory nor an address.
func NoStore(store string) error {
	return fault.New(fault.Usage, store, "is no store: want a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR")
}

// Dir returns the lock directory if no option names a store: $ADLOCK_STORE, or the usual one.
func Dir() (string, error) { return DirOf(os.Getenv(storeVariable)) }

// DirOf returns the lock directory of a store. Without a store, or for one beyond this machine,
// whose runlog is kept there, it is the usual one: $ADLOCK_DIR, else for root /var/lib/adlock,
// for others $HOME/.local/state/adlock. (XDG_STATE_HOME is not read: cron does not have it, and
// one job would get two directories.)
func DirOf(store string) (string, error) {
	if isMistyped(store) {
		return "", NoStore(store)
	}
	if store != "" && !IsRemote(store) {
		return store, nil
	}
	return usualDir(os.Geteuid())
}

func usualDir(uid int) (string, error) {
	if dir := os.Getenv("ADLOCK_DIR"); dir != "" {
		return dir, nil
	}
	if uid == 0 {
		return rootsDir, nil
	}
	if dir := UserDir(uid); IsUsers(dir, uid) {
		return dir, nil
	}
	home := os.Getenv("HOME")
	if !path.IsAbs(home) {
		return "", fault.New(fault.Unavailable, "ADLOCK_DIR", "is not set, and HOME is no absolute path ("+initAsRoot(uid)+")")
	}
	return DirOfHome(home), nil
}

// rootsDir is root's lock directory. Tests change it.
var rootsDir = "/var/lib/adlock"

// UserDir is the lock directory that `adlock init` makes for a user without a home.
func UserDir(uid int) string { return rootsDir + "-" + strconv.Itoa(uid) }

// IsUsers reports whether dir is a directory, and no link to one, of that user's.
func IsUsers(dir string, uid int) bool {
	var st unix.Stat_t
	return sysfile.Lstatat(unix.AT_FDCWD, dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == uid
}

// WayOut is the advice if the lock directory at path cannot be made: `adlock init` makes one for
// a user whose home is not writable, as that of www-data.
func WayOut(path string) string {
	uid := os.Geteuid()
	if uid == 0 || os.Getenv("ADLOCK_DIR") != "" || path != DirOfHome(os.Getenv("HOME")) {
		return "name one of your own: ADLOCK_DIR"
	}
	return initAsRoot(uid)
}

func initAsRoot(uid int) string { return "as root: adlock init " + userName(uid) }

// userName is the name of a user of this machine, else the number.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	text, _ := os.ReadFile("/etc/passwd") // the number does as well
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == number {
			return f[0]
		}
	}
	return number
}

// DirOfHome is the usual lock directory of a user with that home.
func DirOfHome(home string) string { return path.Join(home, ".local/state/adlock") }

// RunlogDir returns the directory of the runlogs: $ADLOCK_LOGDIR, else the lock
// directory.
func RunlogDir() (string, error) {
	if dir := runlogDir(""); dir != "" {
		return dir, nil
	}
	return Dir()
}

// runlogDir is the directory of the runlogs for a lock directory.
func runlogDir(dir string) string {
	if elsewhere := os.Getenv("ADLOCK_LOGDIR"); elsewhere != "" {
		return elsewhere
	}
	return dir
}
