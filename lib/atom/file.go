package atom

import (
	"strconv"
	"strings"
	"time"
)

// Kind is the purpose of a file.
type Kind int

const (
	Foreign       Kind = iota // none of the following
	ActiveLock                // lock.NAME: the atom runs, or the slot is taken
	LastLock                  // last.NAME: when the atom last completed
	ReadersMark               // read.NAME: the atom may have readers
	ReaderLock                // read.NAME.PID: the lock of a reader
	Generation                // lock.NAME.N: on an FTP server, the directory of the N-th owner
	Tick                      // tick.NAME.PERIOD-N: the atom ran in the N-th tick of that period
	LookLock                  // look.NAME: locked by the newcomer that watches whether the atom's job works
	Line                      // line.NAME: locked by the head of the queue for the atom
	TemporaryFile             // temp.TOKEN: to be renamed or linked
	HolderWord                // smith.PID: a message from the holder of an atom in a store to its script
	HolderSocket              // smith.TOKEN: where the holder listens
)

type form int

const (
	nothing form = iota
	ofName
	ofNameAndNumber
	ofNameAndTick
	ofNumber
	ofToken
)

var kinds = [...]struct {
	word string
	form form
}{
	Foreign: {}, ActiveLock: {"lock", ofName}, LastLock: {"last", ofName}, ReadersMark: {"read", ofName}, ReaderLock: {"read", ofNameAndNumber},
	Generation: {"lock", ofNameAndNumber}, Tick: {"tick", ofNameAndTick}, LookLock: {"look", ofName}, Line: {"line", ofName},
	TemporaryFile: {"temp", ofToken}, HolderWord: {"smith", ofNumber}, HolderSocket: {"smith", ofToken},
}

// File is what a file's name contains.
type File struct {
	Kind   Kind
	Name   Name          // of the atom or the slot; "" if the kind has no NAME
	Number int           // the pid, or the number of a generation or tick; 0 if the kind has no number
	Period time.Duration // of a tick
	Token  string        // of a temporary file or a socket
}

// tickBase lets PERIOD-N fit into nine characters: the period in seconds times N is about the present time.
const tickBase = 36

// String returns the file's name; "" for a foreign file.
func (f File) String() string {
	word := kinds[f.Kind].word
	switch kinds[f.Kind].form {
	case ofName:
		return word + "." + string(f.Name)
	case ofNameAndNumber:
		return f.suffixed(strconv.Itoa(f.Number))
	case ofNameAndTick:
		return f.suffixed(strconv.FormatInt(int64(f.Period/time.Second), tickBase) + "-" + strconv.FormatInt(int64(f.Number), tickBase))
	case ofNumber:
		return word + "." + strconv.Itoa(f.Number)
	case ofToken:
		return word + "." + f.Token
	}
	return ""
}

// longestFile is the length in bytes that the name of a file may have on all common file systems.
const longestFile = 255

func (f File) suffixed(suffix string) string {
	word, rest := kinds[f.Kind].word, "."+string(f.Name)+"."+suffix
	if len(word+rest) > longestFile {
		word = word[:1]
	}
	return word + rest
}

// ActiveLock names the file that exists while the atom runs or the slot is taken.
func (n Name) ActiveLock() string { return File{Kind: ActiveLock, Name: n}.String() }

// LastLock names the file whose mtime is when the atom last completed.
func (n Name) LastLock() string { return File{Kind: LastLock, Name: n}.String() }

// ReadersMark names the empty file that says that the atom may have readers.
func (n Name) ReadersMark() string { return File{Kind: ReadersMark, Name: n}.String() }

// ReaderLock names the lock of the process pid that reads the atom.
func (n Name) ReaderLock(pid int) string {
	return File{Kind: ReaderLock, Name: n, Number: pid}.String()
}

// Generation names the directory of the atom's number-th owner on an FTP server.
func (n Name) Generation(number int) string {
	return File{Kind: Generation, Name: n, Number: number}.String()
}

// Tick names the file that records that the atom ran in a tick.
func (n Name) Tick(period time.Duration, number int) string {
	return File{Kind: Tick, Name: n, Period: period, Number: number}.String()
}

// LookLock names the empty file that a newcomer locks (flock) while it watches whether the atom's job works.
func (n Name) LookLock() string { return File{Kind: LookLock, Name: n}.String() }

// Line names the empty file that the head of the queue for the atom locks (flock).
func (n Name) Line() string { return File{Kind: Line, Name: n}.String() }

// TemporaryName names a file that will be renamed or linked.
func TemporaryName(token string) string { return File{Kind: TemporaryFile, Token: token}.String() }

// HolderWordName names the file from which the process pid reads the message of its atom's holder.
func HolderWordName(pid int) string { return File{Kind: HolderWord, Number: pid}.String() }

// HolderSocketName names the socket of the acquisition's holder.
func HolderSocketName(token string) string { return File{Kind: HolderSocket, Token: token}.String() }

// ParseFile returns what a file's name contains; the zero File (Foreign) if adlock gives no file such a name.
func ParseFile(name string) File {
	word, rest, _ := strings.Cut(name, ".")
	for kind, k := range kinds {
		f := File{Kind: Kind(kind)}
		if strings.HasPrefix(k.word, word) && f.parse(k.form, rest) && f.String() == name { // no other spelling
			return f
		}
	}
	return File{}
}

func (f *File) parse(form form, rest string) (is bool) {
	name, suffix := rest, ""
	switch form {
	case ofToken:
		f.Token = rest
		return len(rest) == 32 && strings.Trim(rest, "0123456789abcdef") == "" // 128 bits
	case ofNumber:
		f.Number, is = parseNumber(rest)
		return is
	case ofNameAndNumber, ofNameAndTick:
		dot := max(strings.LastIndexByte(rest, '.'), 0)
		name, suffix = rest[:dot], strings.TrimPrefix(rest[dot:], ".")
	}
	f.Name, is = parseName(name)
	if !is || f.Name.IsSlot() && f.Kind != ActiveLock && f.Kind != Generation {
		return false
	}
	switch form {
	case ofNameAndNumber:
		f.Number, is = parseNumber(suffix)
	case ofNameAndTick:
		period, number, _ := strings.Cut(suffix, "-")
		seconds, _ := strconv.ParseInt(period, tickBase, 32) // out of range: ParseFile refuses it, as String differs
		n, _ := strconv.ParseInt(number, tickBase, 0)
		f.Period, f.Number = time.Duration(seconds)*time.Second, int(n)
		is = seconds > 0 && n >= 0
	}
	return is
}

func parseNumber(text string) (n int, is bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0 && strconv.Itoa(n) == text
}

// Called is the name that people use for a lock: NAME for an active lock, else the file's name.
func (f File) Called() string {
	if f.Kind == ActiveLock {
		return string(f.Name)
	}
	return f.String()
}

// LockCalled parses text as the NAME or file name of an active or reader's lock; false if it is neither.
func LockCalled(text string) (File, bool) {
	if name, is := parseName(text); is {
		return File{Kind: ActiveLock, Name: name}, true
	}
	f := ParseFile(text)
	return f, f.Kind == ActiveLock || f.Kind == ReaderLock
}
