package cli

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/completions"
	"adlock/test/support/golden"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func TestTheCompletionsListEveryVerbAndOption(t *testing.T) {
	all := get(helper.Verbs(helper.Binary(t)))(t)
	for _, s := range completions.Shells {
		file := filepath.Join(helper.Root(), s.File)
		text := get(os.ReadFile(file))(t)
		now := get(s.With(string(text), all))(t)
		golden.File(t, file, now)
	}
}

// interactive is a shell on a terminal of tmux(1), with the completion loaded.
type interactive struct {
	*testing.T
	socket string
	dir    string // the working directory
	locks  string // the lock directory
}

// start is how each shell begins: its command, and what the test types first.
var start = map[string]struct{ command, first string }{
	"bash": {"bash --norc --noprofile", `PS1='> '; bind 'set enable-bracketed-paste off'; . "$COMPLETIONS/adlock.bash"; complete -W 'alpha beta' greet`},
	"bash with bash-completion": {"bash --norc --noprofile",
		`PS1='> '; bind 'set enable-bracketed-paste off'; . /usr/share/bash-completion/bash_completion; . "$COMPLETIONS/adlock.bash"; complete -W 'alpha beta' greet`},
	"zsh": {"zsh -f", `PS1='> '; fpath=($COMPLETIONS $fpath); autoload -Uz compinit; compinit -u -D; _greet() { compadd alpha beta }; compdef _greet greet`},
	"fish": {"fish --no-config",
		`function fish_prompt; echo '> '; end; function fish_greeting; end; set fish_autosuggestion_enabled 0; source $COMPLETIONS/adlock.fish; complete -c greet -f -a 'alpha beta'`},
}

func open(t *testing.T, shell string) *interactive {
	t.Helper()
	command := strings.Fields(start[shell].command)
	need.Tools(t, "tmux", command[0])
	if _, err := os.Stat("/usr/share/bash-completion/bash_completion"); err != nil && strings.HasSuffix(shell, "bash-completion") {
		need.Skip(t, "bash-completion is not installed")
	}
	short, err := os.MkdirTemp("/tmp", "tmux-") // a socket's name has at most some 100 bytes
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	i := &interactive{t, filepath.Join(short, "socket"), t.TempDir(), filepath.Join(helper.Dir(t), "adlock-locks")}
	must(i, os.Mkdir(i.locks, 0o700))
	i.furnish()
	env := []string{
		"env", "-i", "PATH=" + i.dir + "/bin:" + os.Getenv("PATH"), "HOME=" + i.dir, "TERM=screen", "LC_ALL=C.UTF-8",
		"XDG_CONFIG_HOME=" + i.dir, "XDG_DATA_HOME=" + i.dir,
		"ADLOCK_DIR=" + i.locks, "COMPLETIONS=" + filepath.Join(helper.Root(), "sh/completions"),
	}
	i.tmux(append(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", "-c", i.dir}, env...), command...)...)
	session, err := strconv.Atoi(strings.TrimSpace(i.tmux("display-message", "-p", "#{pane_pid}")))
	t.Cleanup(func() {
		i.tmux("kill-server")
		helper.KillSession(session) // a hung process does not notice that its terminal is gone
	})
	must(i, err)
	i.does(start[shell].first)
	return i
}

func (i *interactive) tmux(args ...string) string {
	i.Helper()
	command := exec.Command("tmux", append([]string{"-S", i.socket}, args...)...)
	command.Env = append(need.Clean(), "TERM=screen", "LC_ALL=C.UTF-8")
	out, err := command.CombinedOutput()
	if err != nil {
		i.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (i *interactive) enter(line string) { i.tmux("send-keys", "-l", line+"\r") }

// does makes the shell run a line, and clears the screen. It waits for a file first, as an empty
// screen may be the one before the line.
func (i *interactive) does(line string) {
	i.Helper()
	done := filepath.Join(i.TempDir(), "done")
	i.enter(line + "; echo >" + done)
	helper.Eventually(i, "the line is done and shown", func() bool { return exists(done) && i.screen() != ">" })
	i.enter("clear")
	i.awaitEmpty()
}

func (i *interactive) screen() string { return strings.TrimSpace(i.tmux("capture-pane", "-p", "-J")) }

func (i *interactive) awaitEmpty() {
	i.Helper()
	helper.Eventually(i, "an empty screen with a prompt", func() bool { return i.screen() == ">" })
}

// furnish makes what can be completed: commands, files, atoms.
func (i *interactive) furnish() {
	i.Helper()
	for _, dir := range []string{"bin", "store-here"} {
		must(i, os.Mkdir(filepath.Join(i.dir, dir), 0o700))
	}
	for _, file := range []string{"bin/greet", "bin/greet-the-world", "picture.png"} {
		must(i, need.WriteProgram(filepath.Join(i.dir, file), []byte("#!/bin/sh\n"), 0o755))
	}
	for _, atom := range [][]string{
		{"--name", "backup"}, {"--name", "my-job"}, {"--name", "with space"}, {"--name", "two\nlines"}, {"--name", "pay$(id)"},
		{"--program", "true", "--operator", "copy", "--operand", "/srv/motd"}, {"--program", "p", "--name", "mirror", "--slots", "2"},
	} {
		if r := i.adlock(append(atom, "true")...).Run(i); r.Status != 0 {
			i.Fatalf("%q: %+v", atom, r)
		}
	}
	must(i, unix.Mkfifo(filepath.Join(i.locks, "last.adlock.vm.run.pipe-1"), 0o600)) // completion must not wait for its reader
	holder := i.adlock("--program", "p", "--slots", "2", "--name", "held", "sleep", "300").Start(i)
	i.Cleanup(func() { holder.Signal(i, unix.SIGTERM) })
	helper.Eventually(i, "the atom is held", func() bool {
		locks, err := filepath.Glob(filepath.Join(i.locks, "lock.p.*.run.held"))
		return err == nil && len(locks) == 1
	})
}

func (i *interactive) adlock(args ...string) helper.Command {
	return helper.Command{
		Args: append([]string{helper.Binary(i.T), "run"}, args...), Dir: i.dir,
		Env: []string{"ADLOCK_DIR=" + i.locks, "ADLOCK_HOST=vm"},
	}
}

// completes types a line, a TAB, and a mark, which the shell echoes after the completion. Then
// the screen shows the line and nothing else.
func (i *interactive) completes(typed, want string) {
	i.Helper()
	i.tmux("send-keys", "-l", typed+"\t")
	i.tmux("send-keys", "-l", "@")
	var screen string
	for end := time.Now().Add(helper.Patience); !strings.HasSuffix(screen, "@") && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		screen = i.screen()
	}
	if got := strings.TrimRight(strings.TrimSuffix(screen, "@"), " "); got != "> "+strings.TrimRight(want, " ") {
		i.Errorf("%q became %q, want %q", typed, got, want)
	}
	i.tmux("send-keys", "C-u")
	i.awaitEmpty()
}

// The typed text, and what TAB makes of it; "" means no change.
var typed = [][2]string{
	{"adlock repo", "adlock report"},
	{"adlock run --if", "adlock run --if-elapsed"},
	{"adlock run --quiet-ok --if-elapsed 5m --exp", "adlock run --quiet-ok --if-elapsed 5m --expire-after"},
	{"adlock run --wait ", ""},
	{"adlock help mk", "adlock help mkatomic"},

	// Names of atoms.
	{"adlock run --name bac", "adlock run --name backup"},
	{"adlock run --name my", "adlock run --name my-job"},
	{"adlock run --name=my", "adlock run --name=my-job"},
	{`adlock run --name "my`, `adlock run --name "my-job"`},
	{"adlock run --name with", `adlock run --name with\ space`},
	{"adlock run --name /sr", ""},
	{"adlock status /sr", "adlock status /srv/motd"},
	{"adlock status true.v", "adlock status true.vm.copy._srv_motd"},
	{"adlock tune --reset bac", "adlock tune --reset backup"},
	{"adlock clear he", "adlock clear held"},
	{"adlock clear bac", ""},
	{"adlock status slot", ""},

	// Other values and arguments.
	{"adlock timeline --svg pict", "adlock timeline --svg picture.png"},
	{"adlock timeline --svg=pict", "adlock timeline --svg=picture.png"},
	{"adlock log --since yes", "adlock log --since yesterday"},
	{"adlock log --event acquire,take", "adlock log --event acquire,takeover"},
	{"adlock run --store store", "adlock run --store store-here/"},
	{"adlock run --store etcd:/", "adlock run --store etcd://"},
	{"adlock release pict", "adlock release picture.png"},

	// The command.
	{"adlock run --name backup -- greet-", "adlock run --name backup -- greet-the-world"},
	{"adlock run greet-", "adlock run greet-the-world"},
	{"adlock run cat pict", "adlock run cat picture.png"},
	{"adlock run cat --quiet-", ""},
	{"adlock mkatomic --re", "adlock mkatomic --replace"},
	{"adlock mkatomic out -- greet-", "adlock mkatomic out -- greet-the-world"},
	{"adlock mkatomic out -- cat pict", "adlock mkatomic out -- cat picture.png"},
}

func TestEachShellCompletesVerbsOptionsAndNames(t *testing.T) {
	for shell := range start {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			i := open(t, shell)
			for _, c := range typed {
				i.completes(c[0], cmp.Or(c[1], c[0]))
			}
			if strings.HasPrefix(shell, "bash") { // the others quote a completion within quotes
				i.completes(`adlock status "pay`, `adlock status "pay`)
				i.completes(`adlock status 'pay`, `adlock status 'pay$(id)'`)
			}
			if shell != "bash" { // without bash-completion, bash cannot complete the command's words
				i.completes("adlock run --name backup -- greet al", "adlock run --name backup -- greet alpha")
				i.completes("adlock mkatomic out -- greet al", "adlock mkatomic out -- greet alpha")
			}
			none := filepath.Join(i.dir, "none")
			i.does("export ADLOCK_DIR=" + none)
			i.completes("adlock status bac", "adlock status bac")
			helper.Absent(t, none)
		})
	}
}
