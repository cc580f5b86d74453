package doctor

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// fewestInodes is how many files a lock directory may soon need: two for each atom.
const fewestInodes = 1000

// freeSpace warns if no more than least bytes or few inodes are free at path. The grade is Fail if no file can be made.
func freeSpace(path string, least int64, variable string) []Finding {
	const what = "free space"
	cure := "make some, or name another directory by " + variable
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return []Finding{fail(what, err.Error(), "see what the file system says (dmesg)")}
	}
	if st.Blocks == 0 { // a tmpfs without a limit
		return []Finding{fine(what, "without a limit")}
	}
	bytes := st.Bavail * uint64(cmp.Or(st.Frsize, st.Bsize))
	text := strconv.FormatUint(bytes>>20, 10) + " MiB"
	if st.Files > 0 { // btrfs does not count files
		text += " and " + strconv.FormatUint(st.Ffree, 10) + " files"
	}
	switch {
	case sysfile.NoRoom(path) == unix.ENOSPC:
		return []Finding{fail(what, text, cure)}
	case bytes <= uint64(least) || st.Files > 0 && st.Ffree < fewestInodes:
		return []Finding{warn(what, text, cure)}
	}
	return []Finding{fine(what, text)}
}

func processes() []Finding {
	self, err := process.Of(os.Getpid())
	if err != nil {
		cure := "try again: no job is run while it cannot be read"
		if fault.KindOf(err) == fault.Unavailable {
			cure = "mount it: mount -t proc proc /proc"
		}
		return []Finding{fail("processes", err.Error(), cure)}
	}
	return []Finding{proc(), pidfd(self), machine(self.Machine), boot(self)}
}

func proc() Finding {
	if _, err := os.Stat("/proc/1/stat"); err != nil { // hidepid=1 shows the directory alone
		return warn("/proc", "hides other users' processes (hidepid)", "what cannot be seen counts as living: a job that has become another user may have to be cleared by hand")
	}
	return fine("/proc", "shows every process")
}

func pidfd(self process.Identity) Finding {
	fd, err := unix.PidfdOpen(self.PID, 0)
	if err != nil {
		return warn("pidfd", err.Error(), "from Linux 5.3 on a signal cannot reach a stranger with a used pid; a sandbox may forbid it")
	}
	unix.Close(fd)
	if self.Inode == 0 {
		return fine("pidfd", "there; from Linux 6.9 on it also tells processes apart that have one pid and one start")
	}
	return fine("pidfd", "there, with an inode for each process")
}

func machine(id string) Finding {
	if id == "" {
		return warn("machine id", "there is none", "systemd-machine-id-setup makes one: without it a lock from before a reboot stays until adlock clear, as another machine may have made it")
	}
	return fine("machine id", id)
}

func boot(self process.Identity) Finding {
	const what, shown = "boot id", "/proc/sys/kernel/random/boot_id is not shown"
	switch {
	case self.BootID() != "":
		return fine(what, self.BootID())
	case self.Machine == "":
		return warn(what, shown+", and there is no machine id", "leave out ProcSubset=pid, or make a machine id: without both the lock of an owner that was killed stays until adlock clear")
	}
	return warn(what, shown, "leave out ProcSubset=pid: without it a job that has expired is ended by --enforce only, and newcomers say stuck")
}

// leastMemory is an address space with which no program of adlock has died. Go's runtime reserves some 700 MB at the
// start and 64 MB when the heap grows past 4 MB; if it gets less, it ends the process (measured with Go 1.26 on amd64:
// under 760 MB it ended 15 of 300 runs).
const leastMemory = 780_000 << 10

func limits() Finding {
	const what = "ulimits"
	for _, check := range []func() error{config.CheckFiles, config.CheckThreads} {
		if err := check(); err != nil {
			return fail(what, err.Error(), "raise it where the jobs are started")
		}
	}
	var texts []string
	for _, l := range []struct {
		name string
		id   int
	}{{"-n", unix.RLIMIT_NOFILE}, {"-u", unix.RLIMIT_NPROC}, {"-v", unix.RLIMIT_AS}} {
		var limit unix.Rlimit
		if unix.Getrlimit(l.id, &limit) != nil {
			continue
		}
		texts = append(texts, l.name+" "+limitText(limit.Cur, l.id))
		if l.id == unix.RLIMIT_AS && limit.Cur < leastMemory {
			return fail(what, "ulimit "+texts[len(texts)-1]+": adlock may die while it works",
				"raise it to "+limitText(leastMemory, l.id)+" at least where the jobs are started")
		}
	}
	return fine(what, strings.Join(texts, ", "))
}

func limitText(value uint64, id int) string {
	switch {
	case value == unix.RLIM_INFINITY:
		return "unlimited"
	case id == unix.RLIMIT_AS:
		value >>= 10
	}
	return strconv.FormatUint(value, 10)
}
