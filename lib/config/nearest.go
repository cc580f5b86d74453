package config

import "strings"

// Nearest returns the first of words that begins with word, else the one that differs from word in the fewest letters,
// at most a third of word's. It returns "" if there is none, or if word has fewer than three letters after its dashes.
func Nearest(word string, words []string) string {
	bare := strings.TrimLeft(word, "-")
	most := len(bare) / 3
	if most == 0 {
		return ""
	}
	best := ""
	for _, w := range words {
		if strings.HasPrefix(w, bare) {
			return w
		}
		if d := distance(bare, w); d <= most {
			best, most = w, d-1
		}
	}
	return best
}

// distance is the optimal string alignment distance (Damerau) of a and b.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			next[j+1] = min(row[j+1], next[j]) + 1
			if a[i] == b[j] {
				next[j+1] = min(next[j+1], row[j])
			} else {
				next[j+1] = min(next[j+1], row[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
