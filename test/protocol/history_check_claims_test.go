package protocol

import (
	"strings"
	"testing"
)

// told checks a history in shorthand: one event per line, its clock in seconds.
func told(t *testing.T, lines string) error {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			text.WriteString(line + "\n")
		}
	}
	return check(parse(t, text.String()))
}

func TestTheCheckerAcceptsWhatIsAllowed(t *testing.T) {
	for claim, lines := range map[string]string{
		"one after the other": `
			call a.1 0 x 0
			in a.1 0
			out a.1 1
			end a.1 1 released
			call b.1 1 x 0
			in b.1 1
			out b.1 2
			end b.1 2 released`,
		"busy while it runs, too soon when it has": `
			call a.1 0 x 0
			in a.1 0
			call b.1 0.1 x 0
			end b.1 0.1 busy
			out a.1 1
			end a.1 1 released
			call b.2 1.1 x 1
			end b.2 1.1 too-soon
			call b.3 2.1 x 1
			in b.3 2.1
			gone b 3 killed`,
		"the dead are replaced, and count as completed": `
			call a.1 0 x 0
			in a.1 0
			gone a 1 killed
			call b.1 1 x 5
			in b.1 1
			call c.1 1.1 x 5
			end c.1 1.1 busy
			out b.1 2
			end b.1 2 released
			call c.2 3 x 5
			end c.2 3 too-soon`,
		"a release that was cut short may have happened": `
			call a.1 0 x 0
			in a.1 0
			out a.1 1
			call b.1 1 x 1
			end b.1 1 too-soon
			gone a 9 killed`,
		"one that was cut short while it took the atom may hold it": `
			call a.1 0 x 0
			call b.1 0.1 x 0
			end b.1 0.1 busy
			gone a 9 killed`,
		"an owner is ended after ExpireAfter": `
			call a.1 0 x 0
			in a.1 0
			call b.1 1.1 x 0
			gone a 1.3 signaled
			in b.1 1.2
			out b.1 2
			end b.1 2 released`,
	} {
		if err := told(t, lines); err != nil {
			t.Errorf("%s: %v", claim, err)
		}
	}
}

func TestTheCheckerFindsWhatIsNotAllowed(t *testing.T) {
	for claim, lines := range map[string]string{
		"two owners at once": `
			call a.1 0 x 0
			in a.1 0
			call b.1 0.1 x 0
			in b.1 0.1
			out a.1 1
			end a.1 1 released
			out b.1 1
			end b.1 1 released`,
		"an owner replaced while it lives": `
			call a.1 0 x 0
			in a.1 0
			call b.1 2 x 0
			in b.1 2
			out a.1 3
			gone a 4 killed
			out b.1 5
			end b.1 5 released`,
		"back to back within IfElapsed": `
			call a.1 0 x 1
			in a.1 0
			out a.1 0.1
			end a.1 0.1 released
			call b.1 0.2 x 1
			in b.1 0.5
			gone b 1 killed`,
		"too soon though it never completed": `
			call a.1 0 x 1
			end a.1 0 too-soon`,
		"too soon though it is due": `
			call a.1 0 x 1
			in a.1 0
			out a.1 1
			end a.1 1 released
			call b.1 2.5 x 1
			end b.1 2.5 too-soon`,
		"too soon though only a denied one came before": `
			call a.1 0 x 1
			in a.1 0
			call b.1 0.5 x 1
			end b.1 0.5 busy
			call c.1 0.6 x 1
			end c.1 0.6 too-soon
			out a.1 1
			end a.1 1 released`,
		"a release that was lost on the way": `
			call a.1 0 x 0
			in a.1 0
			out a.1 1
			end a.1 1 released
			call b.1 2 x 0
			end b.1 2 busy`,
		"a young owner ended": `
			call a.1 0 x 0
			in a.1 0
			call b.1 0.1 x 0
			gone a 0.3 signaled
			in b.1 0.3
			out b.1 0.4
			end b.1 0.4 released`,
		"an innocent ended": `
			call a.1 0 x 0
			in a.1 0
			out a.1 0.1
			end a.1 0.1 released
			gone a 3 signaled`,
		"a clash that the job saw": `
			call a.1 0 x 0
			in a.1 0
			clash a.1 0
			gone a 1 killed`,
	} {
		if told(t, lines) == nil {
			t.Errorf("not found: %s", claim)
		}
	}
}
