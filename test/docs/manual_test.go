package docs

// These tests compare the manual pages with what they describe, in both directions: verbs, options, variables, exit
// statuses, kinds of events, the library's functions. make lint checks the form of the pages.

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/run"
	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

type page struct {
	name string // adlock-run.1
	text string
}

func pages(t *testing.T) map[string]*page {
	t.Helper()
	all := map[string]*page{}
	for _, pattern := range []string{"cmd/*/*.1", "sh/*.[0-9]", "lib/*.[0-9]"} {
		files := must.Get(filepath.Glob(filepath.Join(helper.Root(), pattern)))(t)
		for _, file := range files {
			all[filepath.Base(file)] = &page{filepath.Base(file), read(t, file)}
		}
	}
	return all
}

func pageOf(t *testing.T, name string) *page {
	t.Helper()
	p := pages(t)[name]
	if p == nil {
		t.Fatal("there is no page ", name)
	}
	return p
}

func read(t *testing.T, path string) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(helper.Root(), path)
	}
	return string(must.Get(os.ReadFile(path))(t))
}

func allVerbs(t *testing.T) []helper.Verb {
	t.Helper()
	return must.Get(helper.Verbs(helper.Binary(t)))(t)
}

func (p *page) section(title string) string {
	_, text, _ := strings.Cut(p.text, "\n.Sh "+title+"\n")
	text, _, _ = strings.Cut(text, "\n.Sh ")
	return text
}

// items returns the items of a page's lists: the head and the text of each.
func items(text string) (all [][2]string) {
	for _, part := range strings.Split(text, "\n.It ")[1:] {
		item, body, _ := strings.Cut(part, "\n")
		body, _, _ = strings.Cut(body, "\n.El")
		all = append(all, [2]string{item, body})
	}
	return all
}

// found returns all matches of the pattern's first group, sorted and without duplicates.
func found(pattern, text string) []string {
	var all []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// same compares the entries of a page with those of the program.
func same(t *testing.T, where string, page, there []string) {
	t.Helper()
	if len(there) == 0 {
		t.Errorf("%s: there is nothing to compare with", where)
	}
	for _, word := range there {
		if !slices.Contains(page, word) {
			t.Errorf("%s: %q is not told", where, word)
		}
	}
	for _, word := range page {
		if !slices.Contains(there, word) {
			t.Errorf("%s: %q is told, and is not there", where, word)
		}
	}
}

func TestEveryVerbHasAManualPage(t *testing.T) {
	var told, there []string
	for name := range pages(t) {
		if verb := found(`^adlock-(.*)\.1$`, name); len(verb) > 0 && name != "adlock-locksmith.1" {
			told = append(told, verb[0])
		}
	}
	for _, v := range allVerbs(t) {
		there = append(there, v.Name)
	}
	same(t, "pages", told, there)
	overview := pageOf(t, "adlock.1")
	same(t, "adlock.1", found(`\n\.It Cm ([a-z-]+)`, overview.text), append(there, "help", "version"))
	for _, verb := range there {
		if !strings.Contains(overview.section("DESCRIPTION"), "\n.Xr adlock-"+verb+" 1 .\n") {
			t.Errorf("adlock.1: %s does not lead to its page", verb)
		}
	}
}

func TestAVerbsManualPageListsExactlyItsOptions(t *testing.T) {
	for _, v := range allVerbs(t) {
		p := pageOf(t, "adlock-"+v.Name+".1")
		var told []string
		for _, item := range items(p.text) {
			if strings.HasPrefix(item[0], "Fl ") {
				told = append(told, item[0])
			}
		}
		there := []string{"Fl Fl help , Fl h"}
		for _, o := range v.Options {
			there = append(there, item(o))
		}
		same(t, p.name, told, there)
	}
}

// item is the head of an option's item in a page.
func item(o helper.Option) string {
	arg := ""
	if o.Arg != "" {
		arg = " Ar " + o.Arg
	}
	text := "Fl Fl " + o.Name + arg
	if o.Alias != "" {
		text += " , Fl " + o.Alias + arg
	}
	if o.Env != "" {
		text += " Pq Ev " + o.Env
	}
	return text
}

// The page gives a default that is a figure unchanged; it may word a default in words differently.
func TestAVerbsManualPageGivesTheDefaultsOfItsOptions(t *testing.T) {
	compared := 0
	for _, v := range allVerbs(t) {
		p := pageOf(t, "adlock-"+v.Name+".1")
		told := map[string]string{}
		for _, item := range items(p.text) {
			told[item[0]] = item[1]
		}
		for _, o := range v.Options {
			if len(found(`^(\d+[a-z]*)$`, o.Default)) == 0 {
				continue
			}
			compared++
			if !regexp.MustCompile(`default is ` + o.Default + `\b`).MatchString(told[item(o)]) {
				t.Errorf("%s: --%s: it is not told that the default is %s", p.name, o.Name, o.Default)
			}
		}
	}
	if compared < 5 {
		t.Errorf("only %d defaults were compared", compared)
	}
}

func TestNoManualPageNamesAnOptionThatDoesNotExist(t *testing.T) {
	there := map[string]bool{"help": true, "version": true}
	for _, v := range allVerbs(t) {
		for _, o := range v.Options {
			there[o.Name] = true
		}
	}
	for name, p := range pages(t) {
		for _, option := range found(`(?:Fl Fl |--)([a-z][a-z-]*)`, p.text) {
			if !there[option] {
				t.Errorf("%s names --%s", name, option)
			}
		}
	}
}

func TestManualPagesReferToExistingPagesOnly(t *testing.T) {
	all := pages(t)
	for name, p := range all {
		for _, to := range found(`\n\.Xr (adlock\S* \d)`, p.text) {
			if to = strings.Replace(to, " ", ".", 1); all[to] == nil || to == name {
				t.Errorf("%s leads to %s", name, to)
			}
		}
	}
}

func TestTheManualNamesExactlyTheExistingVariables(t *testing.T) {
	var text strings.Builder
	for _, p := range pages(t) {
		text.WriteString(p.text)
	}
	same(t, "the pages", found(`\b(ADLOCK_[A-Z_]*[A-Z])\b`, text.String()), variables(t))
}

// variables are those that a user can set (config.Table), and those that a job, a script or a hook finds set.
func variables(t *testing.T) []string {
	t.Helper()
	names := append(ofHooks(t), process.MarkVariable, "ADLOCK_VERDICT", "ADLOCK_FENCE", "ADLOCK_X") // pages write ADLOCK_X for any variable
	for _, o := range config.Table {
		names = append(names, o.Env)
	}
	return names
}

func ofHooks(t *testing.T) []string {
	t.Helper()
	return found(`"(ADLOCK_[A-Z_]+)(?:",|=" \+)`, read(t, "lib/hook/hook.go"))
}

// ADLOCK_LIB_BIN, the mark in the library that an installation replaces, is no variable.
func TestEveryVariableInTheSourceIsInTheManual(t *testing.T) {
	text := read(t, "sh/adlock.sh") + read(t, "sh/adlock.mk") + read(t, "sh/shell")
	for _, top := range []string{"cmd", "lib"} {
		err := filepath.WalkDir(filepath.Join(helper.Root(), top), func(path string, entry os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				text += read(t, path)
			}
			return err
		})
		must.Do(t, err)
	}
	known := append(variables(t), "ADLOCK_LIB_BIN")
	for _, name := range found(`\b(ADLOCK_[A-Z_]*[A-Z])\b`, text) {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no variable of the manual", name)
		}
	}
}

func TestNoKnownVariableIsReportedAsMistyped(t *testing.T) {
	for _, name := range variables(t) {
		check.Equal(t, name+" is taken for", run.NearestSetting(name), "")
	}
}

// A verb's page has the variables in its help besides those of its options; ADLOCK_FENCE, which
// run sets and does not read, is in the page alone.
func TestAVerbsManualPageListsExactlyItsVariables(t *testing.T) {
	for _, v := range allVerbs(t) {
		if len(v.Env) == 0 {
			continue
		}
		p := pageOf(t, "adlock-"+v.Name+".1")
		if v.Name == "run" {
			v.Env = append(v.Env, "ADLOCK_FENCE")
		}
		same(t, p.name, found(`(?m)^\.It Ev (\S+)$`, p.section("ENVIRONMENT")), v.Env)
	}
}

func TestTheLibrarysManualPageListsItsFunctionsAndSettings(t *testing.T) {
	library, p := read(t, "sh/adlock.sh"), pageOf(t, "adlock.sh.3")
	functions := found(`(?m)^(adlock_\w+)\(\)`, library)
	same(t, "adlock.sh.3, DESCRIPTION", found(`(?m)^\.It Ic (adlock_\w+)`, p.section("DESCRIPTION")), functions)
	same(t, "adlock.sh.3, SYNOPSIS", found(`(?m)^\.Ic (adlock_\w+)`, p.section("SYNOPSIS")), functions)
	_, settings, _ := strings.Cut(library, "\n# SETTINGS")
	settings, _, _ = strings.Cut(settings, "\n# HOW IT LOCKS")
	same(t, "adlock.sh.3, SETTINGS", found(`(?m)^\.It Ev (\S+)$`, p.section("SETTINGS")), found(`(?m)^# (ADLOCK_[A-Z_]+)`, settings))
}

// arguments brings the arguments of a function into one form: the library writes [IFELAPSED
// [NOW]], mdoc Oo Ar IFELAPSED Op Ar NOW Oc.
var arguments = strings.NewReplacer("[", "", "]", "", "Oo ", "", "Op ", "", " Oc", "", "Ar ", "", "Fl -", "--", " ...", "...", "It Ic ", "")

func TestTheLibrarysManualPageGivesItsFunctionsArguments(t *testing.T) {
	told := found(`(?m)^\.(It Ic adlock_\w+.*)$`, pageOf(t, "adlock.sh.3").text)
	there := found(`(?m)^# (adlock_[a-z]+(?: [A-Z\[-].*)?)$`, read(t, "sh/adlock.sh"))
	for _, list := range [][]string{told, there} {
		for i := range list {
			list[i] = arguments.Replace(list[i])
		}
	}
	same(t, "adlock.sh.3", told, there)
}

func TestManualPagesListTheExitStatuses(t *testing.T) {
	all := found(`(?m)^\tStatus\w+ += (\d+)$`, read(t, "lib/fault/status.go"))
	without := func(some ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(status string) bool { return slices.Contains(some, status) })
	}
	const inList = `(?m)^\.It (\d+)$`
	for name, want := range map[string][]string{
		"adlock.1": append(without("0"), "1"), "adlock-run.1": without("0"), "adlock.sh.3": without("124", "126"),
	} {
		same(t, name, found(inList, pageOf(t, name).section("EXIT STATUS")), want)
	}
	for name, p := range pages(t) { // status 1 is the answer no
		for _, status := range found(`(?m)(?:^|\.It |[ (])(\d+)(?:$|,? (?:if|where|or)|;|\))`, p.section("EXIT STATUS")) {
			if status != "1" && !slices.Contains(all, status) {
				t.Errorf("%s tells of status %s", name, status)
			}
		}
	}
}

func TestTheLogManualPageListsEveryEvent(t *testing.T) {
	var kinds []string
	for _, kind := range runlog.Kinds() {
		kinds = append(kinds, string(kind))
	}
	same(t, "adlock-log.1", found(`(?m)^\.It Cm ([\w-]+)$`, pageOf(t, "adlock-log.1").section("EVENTS")), kinds)
}

func TestTheCheckManualPageListsEveryMistake(t *testing.T) {
	var mistakes string
	files, err := filepath.Glob(filepath.Join(helper.Root(), "lib/lint/*.go"))
	for _, file := range files {
		mistakes += read(t, file)
	}
	must.Do(t, err)
	told := words(pageOf(t, "adlock-check.1").section("MISTAKES"), "")
	same(t, "adlock-check.1", told, found(`\.(?:add|once)\([^,]+, "([^"]+)"`, mistakes))
}

func TestTheRunManualPageListsTheVariablesOfHooks(t *testing.T) {
	hooks, source := pageOf(t, "adlock-run.1").section("HOOKS"), read(t, "lib/hook/hook.go")
	same(t, "adlock-run.1, HOOKS", words(hooks, "Cm"), found(`Kind += "([\w-]+)"`, source))
	same(t, "adlock-run.1, HOOKS", append(words(hooks, "Ev"), "ADLOCK_EVENT"), ofHooks(t))
}

// words are the words with that macro in the heads of items; macro "": with any macro.
func words(text, macro string) []string {
	return strings.Split(strings.Join(found(`(?m)^\.It +`+macro+` *(.*)$`, text), " , "), " , ")
}

// examples are the lines of a page's examples that call the helper: dry runs, and verbs that
// only read. (Lines with columns are output.)
func examples(p *page) []string {
	var lines []string
	for _, part := range strings.Split(p.text, "\n.Bd -literal")[1:] {
		part, _, _ = strings.Cut(part, "\n.Ed")
		lines = append(lines, found(`(?m)^(?:\$ |.*/)?(adlock (?:run|status|log|report|timeline|tune)\b.*)$`, part)...)
	}
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, "  ") || strings.Contains(line, "://") || strings.Contains(line, "--html") || strings.Contains(line, "--follow")
	})
}

// Go's runtime decides how much address space the programs need.
func TestAdlockRunsInTheAddressSpaceThatTheManualGives(t *testing.T) {
	found := regexp.MustCompile(`ulimit -v (\d+)\n`).FindStringSubmatch(pageOf(t, "adlock.7").text)
	if found == nil {
		t.Fatal("adlock(7) does not say it")
	}
	env := []string{"PROGRAM=" + helper.Binary(t), "ADLOCK_DIR=" + helper.Dir(t)}
	for limit, want := range map[string]int{found[1]: 0, "650000": 2} {
		script := "ulimit -v " + limit + `; i=0; while [ $i -lt 10 ]; do "$PROGRAM" run --name x true || exit; i=$((i + 1)); done`
		if r := (helper.Command{Args: []string{"sh", "-c", script}, Env: env}).Run(t); r.Status != want {
			t.Errorf("under %s the status is %d, not %d", limit, r.Status, want)
		}
	}
}

// dry makes an example run nothing: run becomes a dry run, and its command true.
func dry(example string) string {
	options, _, _ := strings.Cut(example, " -- ")
	if run, is := strings.CutPrefix(options, "adlock run"); is {
		return "adlock run --dry-run" + run + " -- true"
	}
	return example
}

func TestTheExamplesOfTheManualPagesSucceed(t *testing.T) {
	dir := helper.Dir(t)
	env := []string{"PROGRAM=" + helper.Binary(t), "ADLOCK_DIR=" + dir}
	for _, name := range []string{"backup", "feeds", "nightly"} { // the examples need them
		helper.Command{Args: []string{helper.Binary(t), "run", "--name", name, "true"}, Env: env}.Run(t)
	}
	count := 0
	for name, p := range pages(t) {
		for _, example := range examples(p) {
			count++
			script := `adlock() { "$PROGRAM" "$@"; }; picture=a.png; ` + strings.NewReplacer(" /run/", " "+dir+"/", " /srv/", " "+dir+"/").Replace(dry(example)) // where every user may write
			r := helper.Command{Args: []string{"sh", "-c", script}, Env: env}.Run(t)
			if r.Err != "" || r.Status != fault.StatusOK && r.Status != fault.StatusDenied {
				t.Errorf("%s: %s: %+v", name, example, r)
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d examples were found", count)
	}
}
