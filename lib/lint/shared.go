package lint

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/crontab"
)

type taken struct {
	by   *job
	user string

	text            string // the job's command; in twins, the sleep before it
	key             string // names the job's lock; set only in twins
	waits, isShared bool
}

func (t *taken) where(j *job) string {
	if t.by.path == j.path {
		return "line " + strconv.Itoa(t.by.Number)
	}
	return t.by.path + ":" + strconv.Itoa(t.by.Number)
}

func (t *taken) differs(j *job, text string) string {
	switch {
	case t.text != text:
		return "another job"
	case t.by.Input != j.Input:
		return "the same text with other input"
	case t.by.variables != j.variables:
		return "the same text below other variables"
	}
	return ""
}

// userOrPath returns the job's user; if that is unknown, the crontab's path.
func (j *job) userOrPath() (user string, known bool) {
	if j.User != "" {
		user, _, _ = strings.Cut(strings.ReplaceAll(j.User, "/", ":"), ":") // a group or a login class may follow
		return user, true
	}
	if j.user != "" {
		return j.user, true
	}
	return j.path, false
}

// shares reports another job with this job's lock (while one runs, the other is skipped), or this job under two locks.
func (j *job) shares(v *invocation) {
	known := j.environment(v)
	text := j.textOf(v)
	if known == nil || text == "" {
		return
	}
	core, _ := crontab.WithoutSleep(text)
	t := taken{by: j, text: core, waits: j.waits(v), isShared: j.mayBeOn(v, "shared") || j.isSemaphore(v)}
	locked := text
	if _, rest, slept := cronline.CutSleep(text); slept && v.text == "" {
		locked = rest // the sleep is before the lock
	}
	atom, ok := j.atomOf(v, locked)
	if !ok {
		return
	}
	user, _ := j.userOrPath()
	key, place := fmt.Sprintf("%q", atom), ""
	if store, _ := literal(j.option(v, "store")); !config.IsRemote(store) {
		place = fmt.Sprintf("%q %q", user, cmp.Or(known("ADLOCK_DIR"), homeOf(user, known)))
		key += place
	}
	j.pairs(text, key, place)
	j.share(key, t, "give each a name of its own (: NAME ; or --name), or have both wait (--wait, ADLOCK_WAIT)")
}

func (j *job) isSemaphore(v *invocation) bool {
	return v.has("name") && j.own(v, "slots") != nil && j.own(v, "program") == nil
}

func (j *job) share(key string, t taken, cure string) {
	first, is := j.locked[key]
	if !is {
		j.locked[key] = t
		return
	}
	other := first.differs(j, t.text)
	if other == "" || first.by == j || first.waits && t.waits || first.isShared && t.isShared {
		return
	}
	j.add(j.Number, "one lock for two jobs", first.where(j)+" has it too, for "+other+": while one runs the other is skipped", cure)
}

// homeOf returns a HOME that moves the lock directory; "" if there is none, as for root, whose directory is in no home.
func homeOf(user string, known func(name string) string) string {
	if user == "root" {
		return ""
	}
	return known("HOME")
}

// atomOf returns words that are equal for two calls of one atom: the options that name it and, without --name,
// its program (by default the command's) and operand (by default text). ok is false if one of them is known
// only when the job runs.
func (j *job) atomOf(v *invocation, text string) (words []string, ok bool) {
	said := map[string]string{}
	for _, option := range []string{"store", "host", "program", "operator", "operand", "name"} {
		word := j.option(v, option)
		value, whole := literal(word)
		if word != nil && !whole {
			return nil, false
		}
		said[option] = value
		words = append(words, value)
	}
	if said["name"] != "" {
		return words, true
	}
	program := cmp.Or(said["program"], path.Base(wordOf(v.command)))
	return append(words, program, cmp.Or(said["operand"], text)), program != "."
}

// textOf returns the text of the job under a lock, with what precedes the lock, such as a cd.
func (j *job) textOf(v *invocation) string {
	if v.text != "" || len(v.command) == 0 {
		return v.text
	}
	return j.command[:v.call.Pos().Offset()] + j.source(v.command)
}

func (j *job) under(v *invocation) string {
	if v.text != "" || len(v.command) == 0 {
		return v.text
	}
	if only, whole := literal(v.command[0]); whole && len(v.command) == 1 {
		return only // the text of flock -c
	}
	return j.source(v.command)
}

func (j *job) source(words []*syntax.Word) string {
	return j.command[words[0].Pos().Offset():words[len(words)-1].End().Offset()]
}

var cronsOwn = map[string]bool{
	"SHELL": true, "MAILTO": true, "MAILFROM": true, "CONTENT_TYPE": true, "CONTENT_TRANSFER_ENCODING": true, "CRON_TZ": true,
	"RANDOM_DELAY": true, "START_HOURS_RANGE": true, "PERSISTENT": true, "CRON_UNIQUE_UNITS": true,
}

// see adds a variable to those of the jobs below it, and updates distinct. Jobs are compared by that hash:
// comparing all variables of each pair of jobs would take quadratic time.
func (t *tab) see(l *crontab.Line) {
	if !cronsOwn[l.Name] && !strings.HasPrefix(l.Name, "ADLOCK_") {
		if before := t.set[l.Name]; before != nil {
			t.distinct ^= maphash.Comparable(seed, [2]string{l.Name, before.Value})
		}
		t.distinct ^= maphash.Comparable(seed, [2]string{l.Name, l.Value})
	}
	t.set[l.Name] = l
}

var seed = maphash.MakeSeed()

func (j *job) waits(v *invocation) bool {
	if v.program == "flock" {
		return v.waits
	}
	wait := j.option(v, "wait")
	if wait == nil {
		return j.isFiled("ADLOCK_WAIT")
	}
	text, whole := literal(wait)
	return !whole || text != "" && text != "0"
}

func (j *job) directory(v *invocation) {
	known := j.environment(v)
	user, is := j.userOrPath()
	store, _ := literal(j.option(v, "store"))
	if known == nil || !is || !filepath.IsAbs(known("ADLOCK_DIR")) || config.IsRemote(store) {
		return
	}
	dir := filepath.Clean(known("ADLOCK_DIR"))
	first, is := j.used[dir]
	if !is {
		first = taken{by: j, user: user}
		j.used[dir] = first
	}
	if told := dir + "\x00" + user; first.user != user && j.used[told].by == nil {
		j.used[told] = first
		j.add(j.Number, "a lock directory of two users", dir+" is "+first.user+"'s too, by "+first.where(j)+": it belongs to one of them, and the other's jobs are never run",
			`leave ADLOCK_DIR out and say, as root, adlock init USER; or write ADLOCK_DIR= above this line`)
	}
}

// background reports a job that still runs after its lock is released. A child of flock(1) inherits the lock,
// unless flock (-o) or screen closes it.
func (j *job) background(v *invocation) {
	text := j.under(v)
	part := crontab.Background(text)
	cure := "run it in the foreground, as cron starts other lines all the same, or say --whole-job (ADLOCK_WHOLE_JOB=1)"
	if v.program == "flock" {
		cure = "run it in the foreground"
		if !v.closes && crontab.Detached(text) != "screen" {
			return
		}
	}
	if part != "" && !j.mayBeOn(v, "whole-job") {
		j.add(j.Number, "a job in the background", "the lock is released at once, and this goes on without it: "+cronline.Shown(part), cure)
	}
}
