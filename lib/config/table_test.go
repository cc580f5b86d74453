package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"adlock/test/support/must"
)

// source is the text of a file of the shell's side.
func source(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile("../../sh/" + path))(t))
}

// between is the part of a text between two marks.
func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, rest, begun := strings.Cut(text, begin)
	part, _, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("there is no %q before a %q", begin, end)
	}
	return part
}

// sameWords compares two lists, whose order does not matter.
func sameWords(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if got, want := slices.Compact(got), slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("%s has\n\t%q and not\n\t%q", what, got, want)
	}
}

// variables returns the variables, without ADLOCK_, of the options that satisfy is.
func variables(options []Option, is func(*Option) bool) (names []string) {
	for i := range options {
		if o := &options[i]; o.Env != "" && is(o) {
			names = append(names, strings.TrimPrefix(o.Env, "ADLOCK_"))
		}
	}
	return names
}

// ofLibrary returns the options of the library's verbs, except now: only an argument sets it.
func ofLibrary() []Option {
	s := Defaults()
	return slices.DeleteFunc(s.Options(), func(o Option) bool { return o.Name == "now" })
}

func TestAdlockMkUnsetsTheSettingsOfOneLock(t *testing.T) {
	kept := strings.Fields(strings.ReplaceAll(between(t, source(t, "adlock.mk"), "for own in ", "; do"), "\\", ""))
	sameWords(t, "adlock.mk", kept, variables(Table, func(o *Option) bool { return !o.Inherited }))
}

func TestAMakefileCanSetEachSettingOfOneLock(t *testing.T) {
	text := source(t, "adlock.mk")
	set := append(strings.Fields(between(t, text, "\n_adlock_own = ", "\n")), "WAIT") // WAIT has a default there
	sameWords(t, "adlock.mk", set, append(variables(ofLibrary(), func(o *Option) bool { return !o.Inherited }), "FLOCK"))
	for _, name := range regexp.MustCompile(`(?m)^ADLOCK_(\w+) \?=`).FindAllStringSubmatch(text, -1) {
		if o := OfVariable("ADLOCK_" + name[1]); o == nil || o.Inherited {
			t.Errorf("ADLOCK_%s is no setting of one lock", name[1])
		}
	}
}

// passedOn are the settings that the library passes on for each lock.
func passedOn(t *testing.T, text string) (names []string) {
	t.Helper()
	for _, found := range regexp.MustCompile(`\$\{ADLOCK_(\w+):\+"--setting=ADLOCK_(\w+)=\$ADLOCK_(\w+)"\}`).FindAllStringSubmatch(between(t, text, "\n_adlock_as_set() {", "\n}\n"), -1) {
		if found[1] != found[2] || found[1] != found[3] {
			t.Error(found[0])
		}
		names = append(names, found[1])
	}
	return names
}

func TestTheLibraryPassesOnEachSettingOfItsVerbs(t *testing.T) {
	text := source(t, "adlock.sh")
	var exported []string
	for _, found := range regexp.MustCompile(`\$\{ADLOCK_(\w+):\+"ADLOCK_\w+=`).FindAllStringSubmatch(between(t, text, "\n_adlock_help() {", "\n}\n"), -1) {
		exported = append(exported, found[1])
	}
	want := variables(ofLibrary(), func(o *Option) bool { return !slices.Contains(exported, strings.TrimPrefix(o.Env, "ADLOCK_")) })
	arguments := []string{"IF_ELAPSED", "EXPIRE_AFTER"}
	sameWords(t, "adlock.sh", append(passedOn(t, text), arguments...), append(want, "RETRY_FAILED", "ONCE_PER", "FLOCK"))
	for _, name := range exported {
		if o := OfVariable("ADLOCK_" + name); o == nil || !o.Inherited {
			t.Errorf("adlock.sh exports %s", name)
		}
	}
	sameWords(t, "the guard", exported, strings.Fields(between(t, text, "for _adlock_third in LOGDIR", "; do")+" LOGDIR"))
}

func TestTheGuardPassesOnEachSettingOfRun(t *testing.T) {
	text := source(t, "adlock.sh")
	got := append(passedOn(t, text), strings.Fields(between(t, text, "for _adlock_third in ENFORCE", "; do")+" ENFORCE")...)
	arguments := []string{"IF_ELAPSED", "EXPIRE_AFTER", "EXIT_DENIED", "NOW", "NAME", "PROGRAM", "OPERATOR", "OPERAND"}
	want := variables(Table, func(o *Option) bool { return o.Name != "" && !o.Inherited || o.Name == "verbose" })
	sameWords(t, "the guard", append(got, arguments...), want)
}

func TestTheLibrarysHeaderListsItsSettings(t *testing.T) {
	head := between(t, source(t, "adlock.sh"), "\n# SETTINGS", "\n# HOW IT LOCKS")
	told := regexp.MustCompile(`(?m)^# ADLOCK_([A-Z_]+)`).FindAllStringSubmatch(head, -1)
	var names []string
	for _, found := range told {
		names = append(names, found[1])
		if OfVariable("ADLOCK_"+found[1]) == nil {
			t.Errorf("ADLOCK_%s is no setting", found[1])
		}
	}
	for _, name := range variables(ofLibrary(), func(*Option) bool { return true }) {
		if !slices.Contains(names, name) {
			t.Errorf("adlock.sh does not tell of ADLOCK_%s", name)
		}
	}
}

func TestLibraryAndCompletionsKnowTheSchemesOfAllStores(t *testing.T) {
	for _, in := range []struct{ path, begin, between, end string }{
		{"adlock.sh", "\n\tetcd", ":* | ", ":*)\n"}, {"completions/_adlock", "compadd -S \"\" etcd", ":// ", "://'"},
		{"completions/adlock.bash", "\"$2\" etcd", ":// ", "://\n"}, {"completions/adlock.fish", "printf '%s\\n' etcd", ":// ", "://\n"},
	} {
		known := "etcd" + between(t, source(t, in.path), in.begin, in.end)
		sameWords(t, in.path, strings.Split(known, in.between), Schemes)
	}
}

func TestTheTableHasEachSettingOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Table {
		for _, word := range []string{"--" + o.Name, o.Env} {
			if word != "--" && seen[word] || o.Env == "" {
				t.Errorf("%s, %q", word, o.Env)
			}
			seen[word] = true
		}
	}
}

func TestTheCommandLineWinsOverTheEnvironment(t *testing.T) {
	all, text := Origins{}, ""
	options := []Option{Bind("program", AnyText(&text)), Bind("operand", AnyText(&text)), Bind("wait", AnyText(&text))}
	getenv := func(name string) string { return map[string]string{"ADLOCK_PROGRAM": "p", "ADLOCK_WAIT": "1s"}[name] }
	if _, err := all.ParseIn(getenv, options, []string{"--wait", "2s"}); err != nil || text != "2s" {
		t.Error(text, err)
	}
	if all.Compare("wait", "program") <= 0 || all.Compare("program", "operand") <= 0 || all.Compare("program", "program") != 0 {
		t.Error(all)
	}
	if got := all["wait"].Word + " " + all["program"].Word; got != "--wait ADLOCK_PROGRAM" {
		t.Error(got)
	}
}

func TestLibraryAndProgramsHaveTheSameVersion(t *testing.T) {
	if !strings.Contains(source(t, "adlock.sh"), "\n_adlock_version="+Release+"\n") {
		t.Errorf("sh/adlock.sh is not of version %s", Release)
	}
}

func TestTheNearestWordIsSuggestedForAMistypedOne(t *testing.T) {
	words := []string{"status", "log", "report", "release", "timeline", "if-elapsed", "expire-after", "wait", "wait-elapsed"}
	for word, want := range map[string]string{
		"stauts": "status", "stats": "status", "statuss": "status", "reprot": "report", "time": "timeline", "rel": "release",
		"--exprie-after": "expire-after", "--if-elapse": "if-elapsed", "--expire": "expire-after", "--wiat": "wait", "lgo": "log",
		"fly": "", "--fly": "", "x": "", "-y": "", "---": "", "": "", "backup": "", "wait-for-it": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
