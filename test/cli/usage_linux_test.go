package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"adlock/lib/config"
	"adlock/test/support/check"
)

// programs are the paths of all programs.
func programs(t *testing.T) []string {
	t.Helper()
	program := withLocksmith(t)
	return []string{program, program + "-report", program + "-locksmith"}
}

// told lists the first words of the lines below a heading of a help text.
func told(help, heading string) []string {
	_, list, _ := strings.Cut(help, "\n"+heading+":\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var words []string
	for line := range strings.Lines(list) {
		words = append(words, strings.Fields(line)[0])
	}
	return words
}

func TestProgramsReportUnknownVerbsAndOptionsAlike(t *testing.T) {
	s := newStage(t)
	for _, path := range programs(t) {
		name := filepath.Base(path)
		says := func(want string, words ...string) {
			t.Helper()
			c := s.command(words...)
			c.Args[0] = path
			c.Run(t).Is(t, 64, "", want+"\n")
		}
		help := func(words ...string) string {
			c := s.command(append(words, "--help")...)
			c.Args[0] = path
			return c.Run(t).Out
		}
		says("adlock: fly: unknown verb ("+name+" --help lists them)", "fly")
		says(`adlock: "help": is followed by a word too many`, "help", "fly", "on")
		says(`adlock: "version": is followed by a word too many`, "version", "fly")
		says("adlock: --fly: unknown option ("+name+" --help lists them)", "--fly")
		says("adlock: hepl: unknown verb: did you mean help? ("+name+" --help lists them)", "hepl")
		verbs := told(help(), "verbs")
		if len(verbs) == 0 {
			t.Errorf("%s has no verbs", name)
		}
		for _, verb := range verbs {
			if verb == "shell" {
				continue // its options are those of /bin/sh
			}
			for _, option := range []string{"--fly", "-y"} {
				says("adlock: "+option+": unknown option ("+name+" "+verb+" --help lists them)", verb, option)
			}
			if slices.ContainsFunc(config.Reports, func(v config.Verb) bool { return v.Name == verb }) {
				says("adlock: "+verb+": bad flag syntax: --- ("+name+" "+verb+" --help lists them)", verb, "---") // as the library says it
			} else {
				says("adlock: ---: unknown option ("+name+" "+verb+" --help lists them)", verb, "---")
			}
			of := help(verb)
			for _, option := range told(of, "options") {
				option = strings.TrimSuffix(option, ",")
				if takes := regexp.MustCompile(`(?m)^  ` + option + `(?:, -+\w+)* ([A-Z]\S*)`).FindStringSubmatch(of); takes != nil {
					says("adlock: "+option+": needs a value: "+takes[1], verb, option)
				} else if option != "--help" {
					says("adlock: "+option+": takes no value", verb, option+"=1")
				}
			}
		}
	}
}

func TestTheIntendedVerbIsSuggested(t *testing.T) {
	s := newStage(t)
	const lists = " (adlock --help lists them)"
	s.refused(64, "adlock: --name: unknown option: did you mean run --name?"+lists+"\n", "--name", "a", "true")
	s.refused(64, "adlock: --expire-after: unknown option: did you mean run --expire-after?"+lists+"\n", "--expire-after=5", "true")
	s.refused(64, "adlock: sleep: unknown verb: did you mean run sleep?"+lists+"\n", "sleep", "5")
	s.refused(64, "adlock: kill: unknown verb: did you mean kill-carefully?"+lists+"\n", "kill", "5")
	for word, verb := range map[string]string{"lock": "run", "unlock": "clear", "list": "status", "history": "log", "end": "stop"} {
		s.refused(64, "adlock: "+word+": unknown verb: did you mean "+verb+"?"+lists+"\n", word, "feeds")
	}
	s.refused(64, "adlock: --: unknown option"+lists+"\n", "--", "true")
}

func TestHelpAndVersionAreVerbsOfEveryProgram(t *testing.T) {
	s := newStage(t)
	for _, path := range programs(t) {
		out := func(words ...string) string {
			c := s.command(words...)
			c.Args[0] = path
			r := c.Run(t)
			if r.Status != 0 || r.Err != "" || r.Out == "" {
				t.Errorf("%s %q: %+v", filepath.Base(path), words, r)
			}
			return r.Out
		}
		if out("help") != out("--help") || out("version") != out("--version") {
			t.Errorf("%s: a verb says another thing than its option", path)
		}
		check.Equal(t, "the version", out("version"), filepath.Base(path)+" version "+config.Version()+"\n")
		for _, verb := range told(out("help"), "verbs") {
			check.Equal(t, path+" help "+verb, out("help", verb), out(verb, "--help"))
		}
	}
}

// A person who finds the library's verbs, in a trace for example, must not lock on behalf of
// the interactive shell, and no text leads to them.
func TestTheLibrarysVerbsAreHiddenAndRefusedToUsers(t *testing.T) {
	s := newStage(t)
	all := programs(t)
	verbs := map[string][]string{all[0]: {"take", "takeover", "name", "guard", "guarded"}, all[2]: {"lease", "release"}}
	for program, list := range verbs {
		for _, verb := range list {
			for _, words := range []string{"", "--help", "lock.p.dax.o.x p dax o x", "--owner", "--owner 1", "--owner 1 lock.p.dax.o.x"} {
				c := s.command(append([]string{verb}, strings.Fields(words)...)...)
				c.Args[0] = program
				r := c.Run(t)
				if r.Status != 64 || r.Out != "" || !oneLine(r.Err) || strings.Contains(r.Err, "PROGRAM HOST") {
					t.Errorf("%q: %+v", c.Args, r)
				}
			}
		}
		c := s.command("--help")
		c.Args[0] = program
		if listed := told(c.Run(t).Out, "verbs"); slices.ContainsFunc(list, func(verb string) bool { return slices.Contains(listed, verb) }) {
			t.Errorf("%s --help lists %q", program, listed)
		}
	}
	s.refused(64, "take: is called by adlock.sh only", "take", "lock.p.dax.o.x", "p", "dax", "o", "x")
	for verb, private := range map[string]string{"release": "--withdraw --again", "kill-carefully": "OPERAND", "mkatomic": "OPERAND --lock"} {
		for _, word := range strings.Fields(private) {
			if help := s.want(0, verb, "--help").Out; strings.Contains(help, word) {
				t.Errorf("%s --help tells of %s:\n%s", verb, word, help)
			}
		}
	}
	if left, err := os.ReadDir(s.locks); err != nil || len(left) > 0 {
		t.Errorf("written: %v %v", left, err)
	}
}
