package terminal

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Shortened cuts the names to width columns, and keeps names of different atoms different if
// possible. First it cuts directories of a path in the name, as in "make run /home/user/project
// make all". If two names would become equal, it cuts the middle of the name, then the part that it
// shares with others, and at last all but the place where they differ.
func Shortened(names []string, width int, gap string) []string {
	ways := []func(string) string{
		func(name string) string { return withoutDirectories(name, width, gap) },
		func(name string) string { return Cut(name, width, gap) },
		func(name string) string { return withoutCommon(name, names, width, gap) },
		func(name string) string { return difference(name, names, width, gap) },
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = Cut(name, width, gap)
	}
	for _, way := range slices.Backward(ways) { // the preferred way comes last, and stays
		cuts, uses := make(map[string]string), make(map[string]int)
		for _, name := range names {
			if _, done := cuts[name]; !done { // the same words on another host
				cuts[name] = way(name)
				uses[cuts[name]]++
			}
		}
		for i, name := range names {
			if uses[cuts[name]] == 1 && Columns(cuts[name]) <= width {
				short[i] = cuts[name]
			}
		}
	}
	return short
}

// withoutCommon leaves out the beginning that the name shares with the most similar one, up to the
// word or directory in which they differ, and cuts the end if it does not fit.
func withoutCommon(name string, names []string, width int, gap string) string {
	common := mostCommon(name, names)
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

// difference is the part of the name where it differs from the most similar one, with as much
// text before it as after it.
func difference(name string, names []string, width int, gap string) string {
	common := mostCommon(name, names)
	before, rest := name[:common], name[common:]
	before = cells.TruncateLeft(before, max(0, Columns(before)-max(0, width-2*Columns(gap))/2), "")
	return gap + before + cells.Truncate(rest, max(0, width-Columns(gap+before)), gap)
}

// mostCommon is the length in bytes of the longest beginning that the name shares with another one.
func mostCommon(name string, names []string) (most int) {
	for _, other := range names {
		if other != name {
			most = max(most, commonPrefix(name, other))
		}
	}
	return most
}

// commonPrefix is the length in bytes of the common beginning, in whole characters.
func commonPrefix(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}

// withoutDirectories leaves out directories at the beginning of the first absolute path until the
// name fits. If it does not fit without all of them, its middle is cut instead.
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
