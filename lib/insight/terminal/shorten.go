package terminal

import (
	"slices"
	"strings"
)

// Shortened cuts the names to width columns, so that those of different atoms stay
// different: first the directories that a path among their words begins with, as
// in "make run /home/user/project make all"; where that would make two alike, the
// middle, and then what they have in common; where even that does, nothing.
func Shortened(names []string, width int, gap string) []string {
	ways := []func(string) string{
		func(name string) string { return withoutDirectories(name, width, gap) },
		func(name string) string { return Cut(name, width, gap) },
		func(name string) string { return withoutCommon(name, names, width, gap) },
	}
	short := slices.Clone(names)
	for _, way := range slices.Backward(ways) { // what is to be preferred comes last, and stays
		cuts, uses := make(map[string]string), make(map[string]int)
		for _, name := range names {
			if _, done := cuts[name]; !done { // the same words on another host
				cuts[name] = way(name)
				uses[cuts[name]]++
			}
		}
		for i, name := range names {
			if uses[cuts[name]] == 1 {
				short[i] = cuts[name]
			}
		}
	}
	return short
}

// withoutCommon leaves out what the name has in common with the one most like it, up
// to the word or directory that tells them apart, and then what does not fit.
func withoutCommon(name string, names []string, width int, gap string) string {
	common := 0
	for _, other := range names {
		if other != name {
			common = max(common, commonPrefix(name, other))
		}
	}
	program, _, _ := strings.Cut(name, " ")
	at := strings.LastIndexAny(name[:common], "/ ")
	if Columns(name) <= width || at <= len(program) {
		return name
	}
	rest := name[at:]
	short := program + " " + gap
	for _, r := range rest {
		if Columns(short+string(r)+gap) > width {
			return short + gap
		}
		short += string(r)
	}
	return short
}

func commonPrefix(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// withoutDirectories leaves out as many directories as it takes at the beginning of
// the first absolute path; where all of them do not suffice, the middle is cut instead.
func withoutDirectories(name string, width int, gap string) string {
	at := strings.Index(name, " /")
	if at < 0 || Columns(name) <= width {
		return Cut(name, width, gap)
	}
	head, path := name[:at+1], name[at+1:]
	first, rest, _ := strings.Cut(path, " ")
	short := name
	for Columns(short) > width {
		slash := strings.IndexByte(first[1:], '/')
		if slash < 0 {
			return Cut(name, width, gap)
		}
		first = first[slash+1:]
		short = strings.TrimRight(head+gap+first+" "+rest, " ")
	}
	return short
}
