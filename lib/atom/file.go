package atom

import (
	"strconv"
	"strings"
	"time"
)

// Kind is the purpose of a file.
type Kind int

// The kinds of files that are named here.
const (
	Foreign       Kind = iota // none of the following
	ActiveLock                // lock.NAME: the atom runs, or the slot is taken
	LastLock                  // last.NAME: when the atom last completed
	ReadersMark               // read.NAME: the atom may have readers
	ReaderLock                // read.NAME.PID: the lock of a reader
	Generation                // lock.NAME.N: on an FTP server, the directory of the N-th owner
	Tick                      // tick.NAME.PERIOD-N: the atom ran in the N-th tick of that period
	LookLock                  // look.NAME: locked by the newcomer that watches whether the atom's job works
	Line                      // line.NAME: locked by the first of the newcomers that wait for the atom
	TemporaryFile             // temp.TOKEN: to be renamed or linked
	HolderWord                // smith.PID: a message from the holder of an atom in a store to its script
	HolderSocket              // smith.TOKEN: where the holder listens
)

// The words that the names begin with.
const (
	lockWord      = "lock"
	lastWord      = "last"
	readWord      = "read"
	tickWord      = "tick"
	lookWord      = "look"
	lineWord      = "line"
	temporaryWord = "temp"
	holderWord    = "smith"
)

// File is what a file's name contains.
type File struct {
	Kind   Kind
	Name   Name          // of the atom or the slot; "" if the kind has no NAME
	Number int           // the pid, or the number of a generation or tick; 0 if the kind has no number
	Period time.Duration // of a tick
	Token  string        // of a temporary file or a socket
}

// String returns the file's name; "" for a foreign file.
func (f File) String() string {
	switch f.Kind {
	case ActiveLock:
		return f.Name.ActiveLock()
	case LastLock:
		return f.Name.LastLock()
	case ReadersMark:
		return f.Name.ReadersMark()
	case ReaderLock:
		return f.Name.ReaderLock(f.Number)
	case Generation:
		return f.Name.Generation(f.Number)
	case Tick:
		return f.Name.Tick(f.Period, f.Number)
	case LookLock:
		return f.Name.LookLock()
	case Line:
		return f.Name.Line()
	case TemporaryFile:
		return TemporaryName(f.Token)
	case HolderWord:
		return HolderWordName(f.Number)
	case HolderSocket:
		return HolderSocketName(f.Token)
	}
	return ""
}

// ActiveLock names the file that exists while the atom runs or the slot is taken.
func (n Name) ActiveLock() string { return lockWord + "." + string(n) }

// LastLock names the file whose mtime is when the atom last completed.
func (n Name) LastLock() string { return lastWord + "." + string(n) }

// ReadersMark names the empty file that says that the atom may have readers.
func (n Name) ReadersMark() string { return readWord + "." + string(n) }

// ReaderLock names the lock of the process pid that reads the atom.
func (n Name) ReaderLock(pid int) string { return n.numbered(readWord, pid) }

// Generation names the directory of the atom's number-th owner on an FTP server.
func (n Name) Generation(number int) string { return n.numbered(lockWord, number) }

// Tick names the file that records that the atom ran in a tick: the period in seconds and the
// number, both to the base of 36. So they fit into nine characters, which is what the longest NAME
// leaves: their product is the time.
func (n Name) Tick(period time.Duration, number int) string {
	return n.suffixed(tickWord, strconv.FormatInt(int64(period/time.Second), tickBase)+"-"+strconv.FormatInt(int64(number), tickBase))
}

const tickBase = 36

// LookLock names the empty file whose flock is the turn to watch whether the atom's job works.
func (n Name) LookLock() string { return lookWord + "." + string(n) }

// Line names the empty file in whose flock the newcomers queue that wait for the atom.
func (n Name) Line() string { return lineWord + "." + string(n) }

// TemporaryName names a file that will be renamed or linked.
func TemporaryName(token string) string { return temporaryWord + "." + token }

// HolderWordName names the file from which the process pid reads the message of its atom's holder.
func HolderWordName(pid int) string { return holderWord + "." + strconv.Itoa(pid) }

// HolderSocketName names the socket of the acquisition's holder.
func HolderSocketName(token string) string { return holderWord + "." + token }

// longestFile is how long the name of a file may be, in bytes, on every file
// system that matters.
const longestFile = 255

// numbered names one of several numbered files of an atom. If the name would be too long, the word
// before NAME is cut to its first letter, which leaves room for nine digits after the longest NAME.
func (n Name) numbered(word string, number int) string {
	return n.suffixed(word, strconv.Itoa(number))
}

func (n Name) suffixed(word, suffix string) string {
	rest := "." + string(n) + "." + suffix
	if len(word+rest) > longestFile {
		word = word[:1]
	}
	return word + rest
}

// ParseFile tells what a file is from its name.
func ParseFile(name string) File {
	word, rest, _ := strings.Cut(name, ".")
	if f := parseFile(word, rest); f.String() == name { // refuse a number written in another way, or a word that need not be cut
		return f
	}
	return File{}
}

func parseFile(word, rest string) File {
	switch word {
	case temporaryWord:
		if isToken(rest) {
			return File{Kind: TemporaryFile, Token: rest}
		}
	case holderWord:
		if isToken(rest) {
			return File{Kind: HolderSocket, Token: rest}
		}
		if pid, is := parseNumber(rest); is {
			return File{Kind: HolderWord, Number: pid}
		}
	case lookWord:
		return ofAtom(rest, LookLock, Foreign)
	case lineWord:
		return ofAtom(rest, Line, Foreign)
	case tickWord, tickWord[:1]:
		return ofTick(rest)
	case lastWord:
		return ofAtom(rest, LastLock, Foreign)
	case readWord, readWord[:1]:
		return ofAtom(rest, ReadersMark, ReaderLock)
	case lockWord, lockWord[:1]:
		return ofName(rest, ActiveLock, Generation)
	}
	return File{}
}

// ofName reads NAME, for a file of the kind one, or NAME.NUMBER, for a file of the kind oneOfMany.
func ofName(text string, one, oneOfMany Kind) File {
	if name, is := parseName(text); is {
		return File{Kind: one, Name: name}
	}
	dot := strings.LastIndexByte(text, '.')
	if dot < 0 {
		return File{}
	}
	name, isName := parseName(text[:dot])
	number, isNumber := parseNumber(text[dot+1:])
	if !isName || !isNumber {
		return File{}
	}
	return File{Kind: oneOfMany, Name: name, Number: number}
}

func ofTick(text string) File {
	dot := max(strings.LastIndexByte(text, '.'), 0)
	name, isName := parseName(text[:dot])
	period, number, _ := strings.Cut(strings.TrimPrefix(text[dot:], "."), "-")
	seconds, err := strconv.ParseInt(period, tickBase, 32)
	n, wrong := strconv.ParseInt(number, tickBase, 0)
	if !isName || name.IsSlot() || err != nil || wrong != nil || seconds <= 0 || n < 0 {
		return File{}
	}
	return File{Kind: Tick, Name: name, Number: int(n), Period: time.Duration(seconds) * time.Second}
}

// ofAtom is ofName for kinds of files that slots do not have.
func ofAtom(text string, one, oneOfMany Kind) File {
	f := ofName(text, one, oneOfMany)
	if f.Name.IsSlot() {
		return File{}
	}
	return f
}

func parseNumber(text string) (n int, is bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0 && strconv.Itoa(n) == text
}

// isToken reports whether text is a token: 128 bits in hexadecimal.
func isToken(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// Called is the name that people use for a lock: NAME for an active lock, else the file's name.
func (f File) Called() string {
	if f.Kind == ActiveLock {
		return string(f.Name)
	}
	return f.String()
}

// LockCalled returns the active lock or the reader's lock that text names, by NAME or by the name
// of the file. It returns false if text names no lock.
func LockCalled(text string) (File, bool) {
	if name, is := parseName(text); is {
		return File{Kind: ActiveLock, Name: name}, true
	}
	f := ParseFile(text)
	return f, f.Kind == ActiveLock || f.Kind == ReaderLock
}
