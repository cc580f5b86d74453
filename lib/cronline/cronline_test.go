package cronline

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"adlock/lib/fault"
)

func TestALineIsParsedIntoNameSettingsAndCommand(t *testing.T) {
	for command, want := range map[string]Line{
		"backup.sh":                                      {Text: "backup.sh"},
		" \tbackup.sh  'a b' \r\n":                       {Text: "backup.sh  'a b'"},
		": nightly ; backup.sh":                          {Name: "nightly", Text: "backup.sh"},
		": nightly; backup.sh":                           {Name: "nightly", Text: "backup.sh"},
		"\t :\tnightly\t;backup.sh;x":                    {Name: "nightly", Text: "backup.sh;x"},
		": nightly ;":                                    {Name: "nightly"},
		": db/a:b@c.d%e,f+g-h=i^ü\xff ;":                 {Name: "db/a:b@c.d%e,f+g-h=i^ü\xff"},
		": n ADLOCK_WAIT=5m ADLOCK_EXPIRE_AFTER=90m ; x": {Name: "n", Settings: []string{"ADLOCK_WAIT=5m", "ADLOCK_EXPIRE_AFTER=90m"}, Text: "x"},
		": n ADLOCK_WAIT= ; x":                           {Name: "n", Settings: []string{"ADLOCK_WAIT="}, Text: "x"},
		": ADLOCK_EXPIRE_AFTER=90m ; x; y":               {Settings: []string{"ADLOCK_EXPIRE_AFTER=90m"}, Text: "x; y"},
	} {
		wantLine(t, command, want)
	}
}

func TestAColonCommandInAnotherFormIsLeftToTheShell(t *testing.T) {
	for _, command := range []string{
		":", ": ;", ": ; x", ":name ; x", ": a b c", ": a b ; c", ": name", ": name && x", ": name & x", ": name # ; x", ": name\nx ; y",
		": 'a;b' ; c", `: "a" ; c`, ": $name ; c", ": `x` ; c", ": * ; c", ": ~ ; c", ": a>b ; c", ": {a,b} ; c", ": a (b) ; c", `: "" ; x`, ": )", `: a\ b ; c`, "! : ; x", "true ; : n ;",
	} {
		wantLine(t, command, Line{Text: command})
	}
}

func TestMalformedWordsForAdlockAreAnError(t *testing.T) {
	for command, object := range map[string]string{
		`: n ADLOCK_WAIT="5m" ; x`:               "ADLOCK_WAIT=5m",
		": n ADLOCK_WAIT=5m x":                   "ADLOCK_WAIT=5m",
		": n ADLOCK_WAIT=5m && x":                "ADLOCK_WAIT=5m",
		": n ADLOCK_DIR=$HOME/locks ; x":         "ADLOCK_DIR=$HOME/locks",
		": n ADLOCK_WAIT ; x":                    "ADLOCK_WAIT",
		": ADLOCK_WAIT ; x":                      "ADLOCK_WAIT",
		": ADLOCK_;":                             "ADLOCK_",
		": n ADLOCK_WAIT=5m b ; x":               "ADLOCK_WAIT=5m",
		": ADLOCK_WAIT=5m n ; x":                 "ADLOCK_WAIT=5m",
		": n ADLOCK_WAIT=5m ADLOCK-SLOTS=2 ;":    "ADLOCK_WAIT=5m",
		": n ADLOCK_WAIT=5m\n; x":                "ADLOCK_WAIT=5m",
		": b-$(hostname; id) ADLOCK_WAIT=5m ; x": "ADLOCK_WAIT=5m",
		": `id -un` ADLOCK_WAIT=5m ; x":          "ADLOCK_WAIT=5m",
		": b>f ADLOCK_DIR=$(pwd; id)/x ; x":      "ADLOCK_DIR=$(pwd; id)/x",
		": 'my ADLOCK_X=1' ; x":                  "my ADLOCK_X=1",
		": b 2>&1 ADLOCK_WAIT=5m ; x":            "ADLOCK_WAIT=5m",
		": 'my;job' ADLOCK_WAIT=5m ; x":          "ADLOCK_WAIT=5m",
		`: "my;job"\; ADLOCK_WAIT=5m ; x`:        "ADLOCK_WAIT=5m",
		": a b c ADLOCK_WAIT=5m":                 "ADLOCK_WAIT=5m",
	} {
		_, err := Parse(command)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Usage || e.Object != object {
			t.Errorf("%q: %v", command, err)
		}
	}
}

func TestAMisspeltOrMisplacedSettingIsAnError(t *testing.T) {
	for _, command := range []string{
		": n adlock_expire_after=1m ; x", ": n ADLOCK-EXPIRE-AFTER=1m ; x", ": Adlock_Expire_After=1m ; x",
		": n m ADLOCK_EXPIRE_AFTER=1m ; x", ": n A=1 ADLOCK_EXPIRE_AFTER=1m ; x",
		": n EXPIRE_AFTER=90m ; x", ": n WAIT=5m EXPIRE_AFTER=90m;x", ": n ADLOCK_WAIT=5m EXPIRE_AFTER=90m ; x", ": n EXPIRE_AFTER=90m && x", ": n EXPIRE_AFTER=90m x",
		`: n EXPIRE_AFTER="90m" ; x`, ": EXPIRE_AFTER=90m ; x", ": expire_after=90m ; x", ": --wait=5m ; x", ": -x ; y", ": =foo ; x", ": n -E 75 ; x", ": n --wait 5m ; x", ": n --wait",
	} {
		if l, err := Parse(command); err == nil {
			t.Errorf("%q is read as %+v", command, l)
		}
	}
	for _, command := range []string{": && A=1 x", ": a b A=1 ; x", ": 'a b' A=1 ; x", ": ${A:=1} ; x", ": --", ": n ; A=1 x", ": >f && A=1 x", ": adlock-backup ; x", ": n m && ADLOCK_NOW=1 x ; y", ": n m", ": a b ; ADLOCK_NOW=1 x",
		": $(date)", ": >f ; x", ": ${A:=1}; x", ": ${A:=b ADLOCK_NOW=1} ; x", ": \"$(a ADLOCK_NOW=1 b)\" ; x", ": `a ADLOCK_NOW=1` | ADLOCK_NOW=1 x", ": a b # ADLOCK_NOW=1"} {
		if l, err := Parse(command); err != nil {
			t.Errorf("%q: %v, %+v", command, err, l)
		}
	}
}

func TestALockingOrEmptyCommandGetsNoLock(t *testing.T) {
	for _, command := range []string{
		"flock -n /f x", "/usr/bin/flock /f x", "flock", "  exec flock /f x", "exec  /usr/local/sbin/lockf f x", "setlock -n f x",
		"sleep 30; adlock run x", "sleep $((RANDOM % 60)) && flock -n f x", "sleep $[RANDOM % 60]m; flock f x", "sleep 1m 30s;flock f x", "sleep `expr $RANDOM % 60`; flock f x", "sleep ${RANDOM:0:2}; flock f x", "sleep $(shuf -i 1-9 -n 1)s; flock f x", "/bin/sleep 5 ;A=b exec flock f x", "sleep 1; sleep 2; flock f x",
		"A=b flock f x", "A= B='c d' C=\"e 'f\" D=g\\ h exec adlock run x", "/opt/bin/adlock run -- x", "adlock resume --all; x", "adlock metrics -o 'a;b' >/dev/null 2>&1", "adlock hold x; y", "flock f x|y", "", " \t",
	} {
		if l, err := Parse(command); err != nil || !l.Unlocked {
			t.Errorf("%q: %+v, %v", command, l, err)
		}
	}
	for _, command := range []string{
		"flocks f x", "cd /x && flock f x", "A=$(date) flock f x", "sudo flock f x", "a=flock", "'flock' f x", "xflock", "flock.sh", "/flock/x",
		"sleep 30; x", "sleep 30 | flock f x", "sleep 30", "sleep 30;", "sleep; flock f x", "sleep 30 & flock f x", "x; flock f x", "asleep 30; flock f x",
		"sleep $(x; flock f y); z", "sleep \"$(x; flock f y)\"; z", "sleep `x; flock f y`; z", "sleep 3 # ; flock f x", "sleep 3 ';' ; flock f x", "sleep \\; flock f x", "sleep $((1)) <<E; flock f x",
		"(flock f x)", ": n ; flock f x", "adlock status;x", "adlock stat-age --at-least 1h f && x", "exec", "A=b", "execute", "A='b flock f", "lockfile x", "#flock",
	} {
		if l, err := Parse(command); err != nil || l.Unlocked {
			t.Errorf("%q: %+v, %v", command, l, err)
		}
	}
}

func TestAShellReadsTheWordsForAdlockAsAdlockDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := []string{":", " ", " ", ";", "\t", "n", "-", "%", "ADLOCK_X", "=", "'", `"`, `\`, "ü", "\r", "\n", "&", "|", "$", "(", ")", "<", "#", "!", "{", "}", "*", "~", "^", "`", "[", "?"}
		command := ": " + strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "")
		l, err := Parse(command)
		want := l.Settings
		if l.Name != "" {
			want = append([]string{l.Name}, want...)
		}
		if err != nil || len(want) == 0 {
			return
		}
		head, _, _ := strings.Cut(command, ";")
		file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(head+";"), "")
		if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 || file.Stmts[0].Negated {
			t.Fatalf("%q is read as %+v, and a shell says %v", command, l, err)
		}
		var words []string
		for _, w := range file.Stmts[0].Cmd.(*syntax.CallExpr).Args[1:] {
			words = append(words, w.Lit())
		}
		if !slices.Equal(words, want) {
			t.Errorf("%q is read as %+v, and by a shell as %q", command, l, words)
		}
	})
}

func wantLine(t *testing.T, command string, want Line) {
	t.Helper()
	got, err := Parse(command)
	if len(got.Settings) == 0 {
		got.Settings = nil
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: %+v, %v", command, got, err)
	}
}
