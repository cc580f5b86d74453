package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/server"
)

// world is one situation of one atom, p.dax.o.x, with its newcomer.
type world struct {
	*testing.T
	place
	bin     string
	began   time.Time
	options []string // the newcomer's, as for `adlock run`

	inside []string // the command that starts the newcomer; none: the test does
	first  string   // a script's first command, if the test starts the script
}

func newWorld(t *testing.T, p place, options []string) *world {
	t.Helper()
	w := &world{T: t, place: p, bin: withLocksmith(t), began: time.Now().Truncate(time.Second)}
	for _, option := range options {
		if ahead, is := strings.CutPrefix(option, "--now="); is {
			option = "--now=" + strconv.FormatInt(w.began.Add(seconds(ahead)).Unix(), 10)
		}
		w.options = append(w.options, option)
	}
	return w
}

// env are the variables by which every process of the world finds the locks.
func (w *world) env() []string {
	return append(w.vars(), "ADLOCK_HOST=dax", "ADLOCK_PAUSE=1s", "ADLOCK_LEASE=1h", "bin="+w.bin,
		"library="+filepath.Join(helper.Root(), "sh/adlock.sh"))
}

// runner is the command line of `adlock run` up to its options.
func (w *world) runner(operand string, options ...string) []string {
	return append([]string{w.bin, "run", "--program=p", "--operator=o", "--operand=" + operand}, options...)
}

// ask runs a newcomer with these settings, wherever it starts.
func (w *world) ask(settings []string, words ...string) helper.Result {
	w.Helper()
	args := slices.Concat(w.inside, []string{"env"}, w.env(), settings, words)
	return helper.Command{Args: args, Env: w.env()}.Run(w)
}

// run is `adlock run`, with a job that prints "ran".
func (w *world) run(options ...string) helper.Result {
	w.Helper()
	return w.ask(nil, append(w.runner("x", append(w.options, options...)...), "--", "echo", "ran")...)
}

// settings are the newcomer's options as variables of the library.
func (w *world) settings() (settings []string) {
	for _, option := range w.options {
		name, value, given := strings.Cut(strings.TrimPrefix(option, "--"), "=")
		if !given {
			value = "1"
		}
		settings = append(settings, "ADLOCK_"+strings.ReplaceAll(strings.ToUpper(name), "-", "_")+"="+value)
	}
	return append(settings, "ADLOCK_PROGRAM=p", "ADLOCK_BIN="+w.bin, "ADLOCK_VERBOSE=1")
}

// script is adlock_get; it prints its status and its verdict.
func (w *world) script() helper.Result {
	w.Helper()
	if w.first != "" {
		w.inside = nil
	}
	return w.ask(w.settings(), "dash", "-c", `. "$library"; `+w.first+`
		adlock_get o x "${ADLOCK_IF_ELAPSED:-0}"
		echo "$? ${ADLOCK_VERDICT-}"
		adlock_release`)
}

// completed sets the atom's completion to that long ago, and the start of its run to started before now; 0: unchanged.
func (w *world) completed(ago, started time.Duration) {
	w.Helper()
	if r := w.run(); r.Status != 0 {
		w.Fatalf("the run that was to complete: %+v", r)
	}
	w.setLast(w, time.Now().Add(-ago), started)
}

// hold starts a job that holds the atom and has run for age.
func (w *world) hold(age time.Duration, options ...string) *helper.Process {
	w.Helper()
	p := w.start(w.runner("x", append([]string{"--expire-after=2h"}, options...)...))
	if age > 0 {
		w.setAge(w, age)
	}
	return p
}

// start runs the command, and waits until its job runs and is in its lock.
func (w *world) start(command []string) *helper.Process {
	w.Helper()
	ready := filepath.Join(w.TempDir(), "ready")
	p := helper.Command{
		Args: slices.Concat(command, []string{"--", "sh", "-c", `: >"$0"; exec sleep 1000`, ready}), Env: w.env(),
	}.Start(w)
	helper.Eventually(w, "the job runs", func() bool {
		p.Lives(w)
		return exists(ready) && w.settled()
	})
	return p
}

// kill ends a supervisor with its whole job, so that it cannot react.
func (w *world) kill(p *helper.Process) {
	w.Helper()
	helper.KillSession(p.PID)
	p.Wait(w)
	helper.Eventually(w, "nothing of the job lives", func() bool { return len(helper.Session(p.PID)) == 0 })
}

func (w *world) orphan(p *helper.Process) {
	w.Helper()
	p.Signal(w, syscall.SIGKILL)
	helper.Eventually(w, "the supervisor is dead", func() bool { return !helper.Alive(p.PID) })
}

// elapsed returns by how much a figure may differ from that at the beginning of the world: the
// time since then, and a second for the rounding.
func (w *world) elapsed() time.Duration { return time.Since(w.began) + time.Second }

// place is where the locks are. It changes them as time would.
type place interface {
	vars() []string

	setLast(t testing.TB, completed time.Time, started time.Duration)
	setAge(t testing.TB, age time.Duration) // of the active lock, or of the readers' locks

	settled() bool   // the owner has completed its lock
	record() string  // the runlog
	files() []string // of the active lock and of readers
}

type directory struct{ dir string }

func newDirectory(testing.TB) func(testing.TB) place {
	return func(t testing.TB) place { return directory{helper.Dir(t)} }
}

func (d directory) vars() []string { return []string{"ADLOCK_DIR=" + d.dir} }

func (d directory) lock() string { return filepath.Join(d.dir, "lock."+helper.AtomName) }

func (d directory) files() []string {
	locks, _ := filepath.Glob(filepath.Join(d.dir, "lock.p.dax.o.*"))
	readers, _ := filepath.Glob(filepath.Join(d.dir, "read.p.dax.o.*.*"))
	return append(locks, readers...)
}

func (d directory) settled() bool {
	files := d.files()
	for _, file := range files {
		if !helper.Settled(file) {
			return false
		}
	}
	return len(files) > 0
}

func (d directory) setLast(t testing.TB, completed time.Time, started time.Duration) {
	t.Helper()
	last := filepath.Join(d.dir, "last."+helper.AtomName)
	if started > 0 {
		helper.Rewrite(t, last, "started", ago(started))
	}
	must(t, os.Chtimes(last, completed, completed))
}

func (d directory) setAge(t testing.TB, age time.Duration) {
	t.Helper()
	for _, file := range d.files() {
		helper.Rewrite(t, file, "monotonic", monotonic(age))
		at := time.Now().Add(-age)
		must(t, os.Chtimes(file, at, at))
	}
}

func (d directory) record() string {
	text, _ := os.ReadFile(filepath.Join(d.dir, "program.dax.runlog")) // "": there is none yet
	return string(text)
}

// ago is that time in the form of a record.
func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339Nano) }

func monotonic(age time.Duration) string { return (process.Monotonic() - age).String() }

// store has what all stores beyond this machine share: a URL, and a lock directory for the runlog.
type store struct {
	url string
	dir string
}

func (s store) vars() []string { return []string{"ADLOCK_STORE=" + s.url, "ADLOCK_DIR=" + s.dir} }
func (s store) record() string { return directory{s.dir}.record() }
func (s store) settled() bool  { return true } // an owner adds nothing here

// stores numbers the parts of the servers: each world has its own.
var stores atomic.Int64

func number() string { return strconv.FormatInt(stores.Add(1), 10) }

// etcdStore is a part of an etcd of one node.
type etcdStore struct {
	store
	node, atom string
}

// newEtcd starts an etcd and returns a function that makes places in it.
func newEtcd(t testing.TB) func(testing.TB) place {
	t.Helper()
	client := server.Cluster(t, 1, func(m *server.Etcd) string { return m.Peer })[0].Client
	return func(t testing.TB) place {
		prefix := "/question/" + number()
		return etcdStore{store{"etcd://" + client + prefix, helper.Dir(t)}, client, prefix + "/" + helper.AtomName + "/"}
	}
}

func (s etcdStore) ctl(stdin string, args ...string) (string, error) {
	c := exec.Command("etcdctl", append([]string{"--endpoints", s.node, "--dial-timeout=90s", "--command-timeout=90s"}, args...)...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.Output()
	return string(out), err
}

// change changes one value under a key, and leaves its lease.
func (s etcdStore) change(t testing.TB, key, name, value string) {
	t.Helper()
	text := strings.TrimSuffix(get(s.ctl("", "get", "--print-value-only", key))(t), "\n") // etcdctl's own
	get(s.ctl(string(helper.Replaced(t, []byte(text), name, value)), "put", "--ignore-lease", key))(t)
}

func (s etcdStore) files() []string {
	keys, _ := s.ctl("", "get", "--prefix", "--keys-only", s.atom+"line/") // a failure shows as no lock
	return strings.Fields(keys)
}

func (s etcdStore) setLast(t testing.TB, completed time.Time, started time.Duration) {
	t.Helper()
	s.change(t, s.atom+"last", "completed", completed.UTC().Format(time.RFC3339Nano))
	if started > 0 {
		s.change(t, s.atom+"last", "started", ago(started))
	}
}

func (s etcdStore) setAge(t testing.TB, age time.Duration) {
	t.Helper()
	for _, key := range s.files() {
		s.change(t, key, "monotonic", monotonic(age))
	}
}

func (s etcdStore) waiting() (n int) {
	for _, key := range s.files() {
		if strings.HasPrefix(key, s.atom+"line/w/") {
			n++
		}
	}
	return n
}

// ftpStore is a directory of an FTP server.
type ftpStore struct {
	store
	root, password string
	uid            int
}

// newFTP starts a vsftpd and returns a function that makes places in it.
func newFTP(t testing.TB) func(testing.TB) place {
	t.Helper()
	f := server.StartFTP(t, helper.FreePort(t, "127.0.0.1"), "")
	info, err := os.Stat(f.Root)
	must(t, err)
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	return func(t testing.TB) place {
		name := number()
		part := ftpStore{store{"ftp://anonymous@" + f.Address + "/locks/" + name, helper.Dir(t)}, f.Root + "/" + name, f.Password, uid}
		must(t, os.Mkdir(part.root, 0o755))
		must(t, os.Chown(part.root, uid, -1))
		return part
	}
}

func (s ftpStore) vars() []string {
	return append(s.store.vars(), "ADLOCK_FTP_PASSWORD_FILE="+s.password)
}

func (s ftpStore) files() []string {
	owners, _ := filepath.Glob(s.root + "/lock." + helper.AtomName + ".*/owner")
	return owners
}

func (s ftpStore) setLast(t testing.TB, completed time.Time, started time.Duration) {
	t.Helper()
	last := s.root + "/last." + helper.AtomName
	if started > 0 {
		helper.Rewrite(t, last, "started", ago(started))
		helper.Rewrite(t, last, "completed", completed.UTC().Format(time.RFC3339Nano))
	}
	must(t, os.Chtimes(last, completed, completed))
}

// setAge dates the record, and makes the heartbeat that a live owner of that age has.
func (s ftpStore) setAge(t testing.TB, age time.Duration) {
	t.Helper()
	for _, owner := range s.files() {
		// A heartbeat's name has its owner's age.
		before, _ := filepath.Glob(filepath.Dir(owner) + "/beat.*")
		for _, beat := range before {
			must(t, os.Remove(beat))
		}
		beat := fmt.Sprintf("%s/beat.%d", filepath.Dir(owner), int(age.Seconds()))
		must(t, os.WriteFile(beat, nil, 0o600))
		must(t, os.Chown(beat, s.uid, -1))
		at := time.Now().Add(-age)
		must(t, os.Chtimes(owner, at, at))
	}
}
