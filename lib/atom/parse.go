package atom

import (
	"strconv"
	"strings"
)

// Name is NAME: PROGRAM.HOST.OPERATOR.OPERAND of an atom, PROGRAM.HOST.slot-N of a slot, or
// adlock.HOST.run.OPERAND.slot-N of a semaphore's slot. Each part is canonical, so NAME is safe in a file name.
type Name string

func parseName(text string) (Name, bool) {
	parts := strings.Split(text, ".")
	switch isSlot := slotNumber(parts[len(parts)-1]) > 0; {
	case isSlot && len(parts) == 3, isSlot && len(parts) == 5 && isNamed(parts):
		parts = parts[:len(parts)-1]
	case len(parts) != 4:
		return "", false
	}
	for _, part := range parts {
		if !isCanonical(part) {
			return "", false
		}
	}
	return Name(text), true
}

func isNamed(parts []string) bool { return parts[0] == NamedProgram && parts[2] == RunOperator }

func slotNumber(part string) int {
	if number, is := strings.CutPrefix(part, slotPrefix); is {
		if n, isNumber := parseNumber(number); isNumber {
			return n
		}
	}
	return 0
}

func isCanonical(part string) bool {
	head, sum, hasSum := strings.Cut(part, "-")
	if head == "" || underscored(head) != head {
		return false
	}
	if !hasSum {
		return len(head) <= longestPlain
	}
	n, err := strconv.ParseUint(sum, 10, 32)
	wanted := len(head) == keptPrefix || len(head) < keptPrefix && strings.Contains(head, "_")
	return wanted && err == nil && strconv.FormatUint(n, 10) == sum
}

// Atom returns the atom of the name; false if a part has a checksum, or if the name is a slot's.
func (n Name) Atom() (Atom, bool) {
	parts := strings.Split(string(n), ".")
	if len(parts) != 4 {
		return Atom{}, false
	}
	a := Atom{Program: readBack(parts[0]), Host: readBack(parts[1]), Operator: readBack(parts[2]), Operand: readBack(parts[3])}
	return a, a.Check() == nil && a.Name() == n
}

// IsSlot reports whether this is the name of a slot, which has three parts or five, and not of an atom.
func (n Name) IsSlot() bool { return n != "" && strings.Count(string(n), ".") != 3 }

// SlotNumber returns the number of a slot, from 1; 0 for an atom.
func (n Name) SlotNumber() int {
	if !n.IsSlot() {
		return 0
	}
	return slotNumber(string(n[len(n.SlotPrefix()):]))
}

// Host returns the canonical HOST. The atom's events are in the runlog of that host.
func (n Name) Host() string {
	_, rest, _ := strings.Cut(string(n), ".")
	host, _, _ := strings.Cut(rest, ".")
	return host
}

// Prefix returns PROGRAM.HOST. with both dots: only the names of this program on this host begin with it.
func (n Name) Prefix() string {
	program, _, _ := strings.Cut(string(n), ".")
	return program + "." + n.Host() + "."
}

// SlotPrefix returns the beginning of the names of all slots that count this atom, or of this slot's peers.
func (n Name) SlotPrefix() string {
	parts := strings.Split(string(n), ".")
	if len(parts) < 4 || !isNamed(parts) {
		return n.Prefix()
	}
	return strings.Join(parts[:4], ".") + "."
}
