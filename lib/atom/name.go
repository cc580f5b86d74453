// Package atom defines an atom: its four words, its NAME, and every file name made from NAME. Names are
// readable, constant over time, at most 255 bytes long, and distinct for each atom unless checksums
// collide (CheckFound). The shell builds them too: tests compare both with test/support/names.tsv.
package atom

import (
	"encoding/hex"
	"hash/fnv"
	"math"
	"strconv"
	"strings"

	"adlock/lib/fault"
)

const (
	longestPlain = 60 // bytes of a part that is kept whole
	keptPrefix   = 48 // bytes kept of a part that is cut
)

// An Atom is written into records, which must be small, while a command line may have megabytes.
const (
	longestOperand = 4 << 10 // a longer operand is cut to its beginning
	longestOther   = 1 << 10 // a longer program, host or operator is an error
)

// Atom is what is locked: an operation of a program on a host. A part must not be empty or contain a
// null byte. A long operand is cut to its first 4 KiB, '-' and its checksum (New).
type Atom struct {
	Program, Host, Operator, Operand string

	// Command is compared, but is no part of NAME, as arguments may hold passwords; "": not known, or --name was given.
	Command string
}

// New returns the atom with these parts, and cuts a long operand. Its error is that of Check.
func New(program, host, operator, operand string) (Atom, error) {
	a := Atom{Program: program, Host: host, Operator: operator, Operand: operand}
	err := a.Check()
	a.Operand = cut(operand)
	return a, err
}

// RunOperator is the operator of a command, NamedProgram the program of a lock that --name names.
const (
	RunOperator  = "run"
	NamedProgram = "adlock"
)

// Unnamed returns the operand (BASE-SUM) of a command without a name, and the command as an Atom keeps it.
func Unnamed(base, command string) (operand, kept string) {
	return base[:min(len(base), keptPrefix)] + "-" + checksum(command), cut(command)
}

// Digest returns what takes the place of a command in a store, whose records other users may be able to read.
func Digest(command string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(command)) // Write never fails
	return digestPrefix + hex.EncodeToString(h.Sum(nil))
}

// IsDigest reports whether a Command is a Digest, which no person can read.
func IsDigest(command string) bool { return strings.HasPrefix(command, digestPrefix) }

const digestPrefix = "fnv128a:"

// Named returns the atom that --name alone makes.
func Named(name, host string) Atom {
	return Atom{Program: NamedProgram, Host: host, Operator: RunOperator, Operand: name}
}

func cut(operand string) string {
	if len(operand) <= longestOperand {
		return operand
	}
	return operand[:longestOperand] + "-" + checksum(operand)
}

func checksumOf(operand string) (sum string, isCut bool) {
	if len(operand) <= longestOperand || operand[longestOperand] != '-' {
		return "", false
	}
	sum = operand[longestOperand+1:]
	n, err := strconv.ParseUint(sum, 10, 32)
	return sum, err == nil && strconv.FormatUint(n, 10) == sum
}

// String returns the atom in words, for messages.
func (a Atom) String() string {
	return a.Program + " on " + a.Host + ": " + a.Operator + " " + a.Operand
}

// CheckFound compares the atom with the one in its lock: two atoms whose names have the same checksum
// must not deny each other without an error. CheckFound returns nil if found is zero (unknown), or if only one
// of the atoms has a Command: a script, or --operand, can reach the same lock.
func (a Atom) CheckFound(object string, found Atom) error {
	is, wanted := found.String(), a.String()
	command := found.Command
	switch found.Command = a.Command; {
	case found == a && (command == "" || a.Command == "" || command == a.Command), found.Program == "": // found is unknown
		return nil
	case found == a:
		return fault.New(fault.System, object, "is the lock of another command with the same name and sum, "+a.Operand+" (to see that command: adlock status)")
	}
	return fault.New(fault.System, object, "is the lock of another atom with the same name: "+is+" (wanted: "+wanted+")")
}

// Check returns a usage error if a part is empty, too long, or contains a null byte.
func (a Atom) Check() error {
	for _, part := range []struct {
		is, called string
		most       int
	}{
		{a.Program, "program", longestOther}, {a.Host, "host", longestOther}, {a.Operator, "operator", longestOther},
		{a.Operand, "operand", math.MaxInt},
	} {
		if part.is == "" {
			return fault.New(fault.Usage, part.called, "must not be empty")
		}
		if strings.IndexByte(part.is, 0) >= 0 {
			return fault.New(fault.Usage, part.called, "must not hold a null byte")
		}
		if len(part.is) > part.most {
			return fault.New(fault.Usage, part.called, "is longer than "+strconv.Itoa(part.most)+" bytes")
		}
	}
	return nil
}

func (a Atom) Name() Name {
	return Name(Canonify(a.Program) + "." + Canonify(a.Host) + "." + Canonify(a.Operator) + "." + a.operand())
}

// operand returns the last part of NAME, the same for an operand and for its cut form.
func (a Atom) operand() string {
	if sum, isCut := checksumOf(a.Operand); isCut {
		return shortened(a.Operand, sum)
	}
	return Canonify(a.Operand)
}

const slotPrefix = "slot-"

// Slot returns the NAME of the n-th slot (from 1) of those that count the atom. No atom has such a NAME:
// Canonify never makes "slot-N", as it puts no checksum after "slot".
func (a Atom) Slot(n int) Name {
	return Name(a.Name().SlotPrefix() + slotPrefix + strconv.Itoa(n))
}

// IsNamed reports whether --name alone makes the atom. Such an atom with slots is a semaphore.
func (a Atom) IsNamed() bool { return a.Program == NamedProgram && a.Operator == RunOperator }

// Canonify makes one part of a name: every byte that is not an ASCII letter or digit becomes '_' (CanonifyName of the
// 1997 paper). A part that could not be read back, or is long, is cut and followed by a checksum.
func Canonify(part string) string {
	if len(part) <= longestPlain {
		if plain := underscored(part); readBack(plain) == part {
			return plain
		}
	}
	return shortened(part, checksum(part))
}

func shortened(part, sum string) string {
	return underscored(part[:min(len(part), keptPrefix)]) + "-" + sum
}

func underscored(part string) string {
	plain := []byte(part)
	for i, c := range plain {
		if !isAlnum(c) {
			plain[i] = '_'
		}
	}
	return string(plain)
}

// Exact reports whether NAME determines the atom. If not, the last lock must contain the atom's parts.
func (a Atom) Exact() bool { return !strings.Contains(string(a.Name()), "-") }

// readBack turns each '_' into '/' if the part begins with '_', else into '.'.
func readBack(plain string) string {
	if strings.HasPrefix(plain, "_") {
		return strings.ReplaceAll(plain, "_", "/")
	}
	return strings.ReplaceAll(plain, "_", ".")
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

func checksum(part string) string { return strconv.FormatUint(uint64(cksumOf(part)), 10) }

// cksumOf is CRC-32 as cksum(1) has it (POSIX.1-2017): the most significant bit first, over the bytes
// and then their count. The standard library has only the reflected CRC-32.
func cksumOf(text string) uint32 {
	bytes := []byte(text)
	for n := len(text); n > 0; n >>= 8 {
		bytes = append(bytes, byte(n))
	}
	var crc uint32
	for _, b := range bytes {
		crc ^= uint32(b) << 24
		for range 8 {
			crc = crc<<1 ^ 0x04C11DB7&-(crc>>31)
		}
	}
	return ^crc
}
