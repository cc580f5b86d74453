package idle

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"adlock/lib/limit"
	"adlock/lib/process"
)

// These bound the processor time that a process may take in a minute and still count as idle: as much as a language
// runtime (Java, Python) takes to check its timers.
const (
	spareTime   = 50 * time.Millisecond
	spareSwitch = 100 * time.Microsecond // for each context switch
)

// spareFaults is how many minor page faults a process may have in a minute and still count as idle.
// A process that forks copies the pages that it writes next. Measured on Linux 6.18: a fork costs 8
// faults in perl, busybox and yash, 13 in mksh, 17 in Python, 20 in bash and zsh. In three minutes
// without a fork, shells, perl and asyncio had none, Go 3, node with a timer each second 16. dash,
// ksh93 and Python's subprocess use vfork(2) or posix_spawn(3), which cost none.
const spareFaults = 6

// Figures are what one sample shows of one member of a job.
type Figures struct {
	process.Key
	Command string
	Err     error // why the rest could not be read; nil: it was read, or was left out, as the member is a supervisor

	State    string        // what a thread was found doing, in words; "": all threads slept
	CPU      time.Duration // processor time of all its threads
	Switches uint64        // context switches of the threads that live
	Faults   uint64        // minor page faults
	Calls    uint64        // bytes read and written by system calls, including those of children that it has waited for
	Disk     uint64        // bytes read from and written to disks, for example through a mapped file
	Reaped   uint64        // page faults of the children that it has waited for: an increase shows that another child has ended
	Ignores  bool          // it ignores SIGCHLD: its children show neither in Reaped nor in Calls
}

// Judge decides from successive samples whether a job works. The zero Judge has no sample yet.
type Judge struct {
	since map[process.Key]Figures // what the members showed at the beginning of this minute
	began time.Duration           // when this minute began
	seen  bool                    // there was a sample
}

// Look adds a sample: the members' figures at a time, by a clock that stands still while the machine is suspended. Look
// returns a sign of work in words, else "". A member that could not be read is such a sign.
func (j *Judge) Look(at time.Duration, members []Figures) string {
	now := make(map[process.Key]Figures, len(members))
	for _, m := range members {
		now[m.Key] = m
	}
	if !j.seen {
		j.since, j.began, j.seen = now, at, true
	}
	over := at - j.began
	text := j.sign(members, now, over)
	if over >= time.Minute {
		j.since, j.began = now, at
	}
	return text
}

// sign returns the first sign of work, with the processor time and bytes of the whole job if it used any. If these
// alone are a sign of work, sign returns only them.
func (j *Judge) sign(members []Figures, now map[process.Key]Figures, over time.Duration) string {
	var cpu time.Duration
	var bytes uint64
	first := ""
	note := func(m Figures, what string) {
		first = cmp.Or(first, name(m)+" "+what)
	}
	busy := false
	for _, m := range members {
		before, known := j.since[m.Key]
		switch {
		case !known:
			note(m, "was started")
			continue
		case m.Err != nil:
			note(m, "cannot be read: "+m.Err.Error())
			continue
		case before.Err != nil: // that was the previous sample's sign of work
			continue
		}
		cpu += m.CPU - before.CPU
		bytes += max(grown(before.Calls, m.Calls), grown(before.Disk, m.Disk))
		busy = busy || m.CPU-before.CPU > spare(before, m, over) || m.Calls != before.Calls || m.Disk != before.Disk
		if m.State != "" {
			note(m, m.State)
		}
		if m.Reaped != before.Reaped {
			note(m, "has started another, which has ended")
		}
		if float64(m.Faults-before.Faults) > spareFaults*minutes(over) {
			note(m, "has forked, or taken memory")
		}
		if m.Ignores && m.Switches != before.Switches { // without a context switch, it has not run and so has started nothing
			note(m, "has run, and ignores SIGCHLD: what it started cannot be known")
		}
	}
	for key, m := range j.since {
		if _, lives := now[key]; !lives {
			note(m, "has ended")
		}
	}
	switch figures := took(cpu, bytes, over); {
	case figures == "" || !busy && first == "":
		return first
	case busy:
		return figures
	default:
		return first + ", " + figures
	}
}

// spare is the processor time that an idle process may have taken between two samples.
func spare(before, now Figures, over time.Duration) time.Duration {
	return time.Duration(minutes(over)*float64(spareTime)) + time.Duration(grown(before.Switches, now.Switches))*spareSwitch
}

func minutes(over time.Duration) float64 { return max(1, over.Minutes()) }

// grown is how much a count has grown; 0 if it fell, as counts do when a thread ends.
func grown(before, now uint64) uint64 { return max(before, now) - before }

func name(m Figures) string { return "process " + strconv.Itoa(m.PID) + " (" + m.Command + ")" }

// took describes figures, as in "processor 0.40 s, 12 kB in the last minute"; "" if all are 0.
func took(cpu time.Duration, bytes uint64, over time.Duration) string {
	var parts []string
	if cpu > 0 {
		parts = append(parts, "processor "+strconv.FormatFloat(cpu.Seconds(), 'f', 2, 64)+" s")
	}
	if bytes > 0 {
		parts = append(parts, size(bytes))
	}
	if len(parts) == 0 {
		return ""
	}
	span := "minute"
	if over = max(time.Second, over.Round(time.Second)); over != time.Minute {
		span = limit.Format(over)
	}
	return strings.Join(parts, ", ") + " in the last " + span
}

func size(n uint64) string {
	unit, units := "B", []string{"kB", "MB", "GB", "TB"}
	for ; n >= 1000 && len(units) > 0; units = units[1:] {
		n, unit = (n+500)/1000, units[0]
	}
	return strconv.FormatUint(n, 10) + " " + unit
}
