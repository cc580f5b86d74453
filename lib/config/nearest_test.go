package config

import "testing"

func TestAMistypedWordFindsTheNearestOne(t *testing.T) {
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
