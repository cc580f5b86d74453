package terminal

import "unicode/utf8"

// Shortened cuts the names to width columns. Names that would then look equal show where they differ, if that fits.
func Shortened(names []string, width int, gap string) []string {
	cuts := map[string]string{} // the last name that was cut to this text
	clash := map[string]bool{}
	for _, name := range names {
		cut := Cut(name, width, gap)
		if first, known := cuts[cut]; known && first != name {
			clash[cut] = true
		}
		cuts[cut] = name
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = Cut(name, width, gap)
		if !clash[short[i]] { // difference takes long
			continue
		}
		if apart := difference(name, names, width, gap); Columns(apart) <= width {
			short[i] = apart
		}
	}
	return short
}

// difference is the part of the name around the place where the name differs from the most similar other one.
func difference(name string, names []string, width int, gap string) string {
	common := 0
	for _, other := range names {
		if other != name {
			common = max(common, commonPrefix(name, other))
		}
	}
	before, rest := name[:common], name[common:]
	before = cells.TruncateLeft(before, max(0, Columns(before)-max(0, width-2*Columns(gap))/2), "")
	return gap + before + cells.Truncate(rest, max(0, width-Columns(gap+before)), gap)
}

// commonPrefix is the length of the common beginning of a and b, in bytes but without a part of a character.
func commonPrefix(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}
