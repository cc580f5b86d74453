package fault

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/must"
)

// library is the text of sh/adlock.sh, which has to repeat these numbers.
func library(t *testing.T) string {
	t.Helper()
	return string(must.Get(os.ReadFile("../../sh/adlock.sh"))(t))
}

// body is the text of a function of the library.
func body(t *testing.T, function string) string {
	t.Helper()
	_, text, begun := strings.Cut(library(t), "\n"+function+"() {\n")
	text, _, ended := strings.Cut(text, "\n}\n")
	if !begun || !ended {
		t.Fatalf("adlock.sh has no function %s", function)
	}
	return text
}

func TestAdlockGetHasABranchForEachAnswer(t *testing.T) {
	get := body(t, "_adlock_get_atom") + body(t, "_adlock_run_to_take")
	for status, meaning := range map[int]string{
		StatusOK:      `0\)\n[^)]*'\) _adlock_confirm [^)]*\n\t\t_adlock_held=\$_adlock_lock.* _adlock_verdict=acquired\n`,
		AnswerTooSoon: `%\) _adlock_deny too-soon ;;`,
		AnswerBusy:    `%\) _adlock_deny busy ;;`,
		AnswerFull:    `%\) _adlock_deny full ;;`, AnswerPaused: `%\) _adlock_deny paused ;;`,
		AnswerExpired: `\[ "\$_adlock_status" = % \]; then # lock expired\n\t+_adlock_take takeover`,
		AnswerStuck:   `%\).*\n\t+_adlock_verdict=stuck\n\t+return ` + strconv.Itoa(StatusNotPermitted) + `\n`,
	} {
		pattern := strings.ReplaceAll(meaning, "%", strconv.Itoa(status))
		if found := regexp.MustCompile(pattern).FindAllString(get, -1); len(found) != 1 {
			t.Errorf("%d: adlock_get has %d times %s", status, len(found), pattern)
		}
	}
}

func TestTheLibraryKnowsEveryStatusOfTheHelper(t *testing.T) {
	list, _, _ := strings.Cut(strings.SplitAfter(body(t, "_adlock_answered"), "in\n")[1], ")")
	pattern := regexp.MustCompile("^(" + strings.ReplaceAll(strings.TrimSpace(list), " | ", "|") + ")$")
	var known []int
	for n := range 256 {
		if pattern.MatchString(strconv.Itoa(n)) {
			known = append(known, n)
		}
	}
	want := []int{
		StatusOK, StatusUsage, StatusUnavailable, StatusSystem, StatusCannotCreate, StatusIO, StatusDenied, StatusNotPermitted,
		AnswerTooSoon, AnswerBusy, AnswerFull, AnswerExpired, AnswerStuck, AnswerPaused,
	}
	if !slices.Equal(known, want) {
		t.Errorf("adlock.sh has %v, want %v", known, want)
	}
}
