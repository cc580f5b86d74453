package json

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"adlock/lib/limit"
	"adlock/lib/runlog"
)

func TestAnyTextSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := "k" + rapid.String().Draw(t, "text")
		var w Writer
		w.Object("", func() { w.Text(text, text) })
		var back map[string]string
		if err := json.Unmarshal(w.Bytes(), &back); err != nil {
			t.Fatalf("%q: %v", w.Bytes(), err)
		}
		if back[text] != text {
			t.Fatalf("%q came back as %q", text, back)
		}
	})
}

func TestBytesThatAreNoTextAreReplaced(t *testing.T) {
	var w Writer
	w.Text("", "a\xff\x00b")
	if got := w.Bytes(); !json.Valid(got) || !utf8.Valid(got) {
		t.Errorf("not JSON: %q", got)
	}
}

func TestNestingAndAbsentValues(t *testing.T) {
	var w Writer
	w.Array("", func() {
		w.Object("", func() {
			w.Some("empty", "")
			w.OptInt("none", runlog.Opt[int]{})
			w.OptInt("status", runlog.Some(0))
			w.Time("never", time.Time{})
			w.Time("at", time.Unix(0, 1500).UTC())
			w.Seconds("limit", limit.Never)
			w.OptSeconds("age", runlog.Some(1500*time.Millisecond))
			w.Array("list", func() { w.Int("", 1); w.Bool("", true) })
			w.Float("share", 0.25)
		})
		w.Object("", func() {})
	})
	const want = `[{"status":0,"at":"1970-01-01T00:00:00.0000015Z","limit":"never","age":1.5,"list":[1,true],"share":0.25},{}]` + "\n"
	if got := string(w.Bytes()); got != want {
		t.Errorf("got  %s want %s", got, want)
	}
}
