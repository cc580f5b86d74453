package config

import (
	"cmp"
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/sysfile"
	"adlock/lib/way"
)

// A settings file is a head of lines ADLOCK_X=VALUE, then sections, each of which begins with a
// line [NAME] or [PATTERN]. A VALUE is the rest of its line without the blanks around it. Empty
// lines, and lines that begin with #, are ignored.
//
// A file is used only if no user but root and this one can have written it (check). A line with a mistake is ignored,
// and the mistake is reported (Mistakes). After a mistake in a location, each request for a location that the
// environment does not set fails (fault.Misconfigured): with another location the job would have another lock.

type Where int // where a setting may stand in a settings file

const (
	Anywhere Where = iota
	HeadOnly       // in the head: it applies to every lock
	Location       // in the head: it says where the locks or the runlog are, and a mistake in it is an error
	Nowhere        // not in a file: it names a lock, concerns one call, or is needed before files are read
)

var systemFile = "/etc/adlock.conf" // tests change it

// OwnFile is the settings file of a user other than root, in the user's home.
const OwnFile = ".config/adlock.conf"

const mostOfFile = 1 << 20

// File is a settings file that exists.
type File struct {
	Path    string
	Refused error // why the file is not used; nil: it is used

	lines     []line
	mistakes  []error
	misplaced *fault.Error // the first mistake in a location
}

type line struct {
	option  *Option // a row of Table
	value   string  // "": the line undoes earlier ones
	at      string  // FILE:LINE
	section string  // "": the head
}

// Files returns the settings files that exist. They are read once (see Reread). A later one wins.
func Files() []*File { return files() }

var files = sync.OnceValue(readFiles)

// Reread makes the next call of Files read the settings files again. The agent of a script does so for each question.
func Reread() { files = sync.OnceValue(readFiles) }

func readFiles() (all []*File) {
	paths := []string{systemFile}
	if home := os.Getenv("HOME"); os.Geteuid() != 0 && path.IsAbs(home) {
		paths = append(paths, path.Join(home, OwnFile))
	}
	for _, path := range paths {
		if f := readFile(path); f != nil {
			all = append(all, f)
		}
	}
	return all
}

var errReplaced = errors.New("it was replaced while it was read")

// readFile returns nil if there is no file. It tries up to five times if the file is being replaced, made or removed.
func readFile(path string) (f *File) {
	for range 5 {
		if f = tryFile(path); f == nil || !errors.Is(f.Refused, errReplaced) && !errors.Is(f.Refused, unix.ENOENT) {
			break
		}
	}
	return f
}

// tryFile returns nil if there is no file. It parses even a file that it refuses, as a location in it is an
// error. A file that cannot be read counts as one with a mistake in a location.
func tryFile(path string) *File {
	fd, err := sysfile.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil && isNone(path) {
		return nil
	}
	f := &File{Path: path}
	text := ""
	if err == nil {
		defer unix.Close(fd)
		text, err = f.read(fd)
	}
	if err != nil {
		f.refuse(err)
		f.mistakes = nil
		f.mistake(path, errors.Unwrap(f.Refused).Error()+"; it may say where the locks are", true)
		return f
	}
	if err := f.check(fd); err != nil {
		f.refuse(err)
	}
	f.parse(text)
	return f
}

// isNone reports whether there is no settings file. It also returns true if HOME is another user's (sudo -u) and this
// user may not search that directory. A link that leads nowhere counts as a file.
func isNone(file string) bool {
	var st, dir, home unix.Stat_t
	switch err := sysfile.Lstatat(unix.AT_FDCWD, file, &st); {
	case errors.Is(err, unix.ENOENT):
		err := sysfile.Lstatat(unix.AT_FDCWD, path.Dir(file), &dir)
		if err == nil && dir.Mode&unix.S_IFMT == unix.S_IFLNK {
			_, err = os.Stat(path.Dir(file))
			return err == nil
		}
		return err == nil || errors.Is(err, unix.ENOENT)
	case errors.Is(err, unix.EACCES):
		return sysfile.Lstatat(unix.AT_FDCWD, path.Dir(path.Dir(file)), &home) != nil || int(home.Uid) != os.Geteuid()
	default:
		return errors.Is(err, unix.ENOTDIR)
	}
}

func (f *File) refuse(why error) {
	f.Refused = &fault.Error{Kind: fault.NotPermitted, Object: f.Path, Err: fault.Worded("is not used: "+why.Error(), why)}
	f.mistakes = []error{f.Refused}
}

func (f *File) read(fd int) (text string, err error) {
	var st unix.Stat_t
	if err := sysfile.Fstat(fd, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > mostOfFile {
		return "", errors.New("it is no regular file, or larger than 1 MiB")
	}
	buffer := make([]byte, st.Size)
	n, err := sysfile.Pread(fd, buffer, 0)
	return string(buffer[:max(n, 0)]), err
}

// check returns an error if a user other than root and this one may have written, or may replace, the file.
//
// The file is opened before its path is checked. Another user may have made the path lead elsewhere at that moment. If
// that user can still change the path, checkWay refuses it. If the path is safe by now, it leads to another inode than
// the one that was opened (errReplaced).
func (f *File) check(fd int) error {
	var st, named unix.Stat_t
	if err := cmp.Or(sysfile.Fstat(fd, &st), f.checkOwner(&st), f.checkWay(&named)); err != nil {
		return err
	}
	if st.Dev != named.Dev || st.Ino != named.Ino {
		return errReplaced
	}
	return nil
}

// checkWay refuses a path that another user may redirect. It follows links; end gets the last target's stat.
func (f *File) checkWay(end *unix.Stat_t) error {
	at := f.Path
	for range way.MostLinks {
		if err := cmp.Or(way.Check(at, "settings file", nil), sysfile.Lstatat(unix.AT_FDCWD, at, end)); err != nil {
			return err
		}
		if end.Mode&unix.S_IFMT != unix.S_IFLNK {
			return nil
		}
		if !sysfile.IsOurs(end) {
			return fault.New(fault.NotPermitted, at, "is a link of another user's")
		}
		to, err := os.Readlink(at)
		if err != nil {
			return err
		}
		if at, _ = path.Split(at); path.IsAbs(to) {
			at = ""
		}
		at += to
	}
	return unix.ELOOP
}

func (f *File) checkOwner(st *unix.Stat_t) error {
	switch {
	case !sysfile.IsOurs(st):
		return errors.New("it belongs to another user")
	case st.Mode&0o022 != 0:
		return errors.New("it is writable by others (chmod go-w " + fault.Quoted(f.Path) + ")")
	}
	return nil
}

const byteOrderMark = "\ufeff"

func (f *File) parse(text string) {
	section, wellFormed, number := "", true, 0
	for raw := range strings.Lines(strings.TrimPrefix(text, byteOrderMark)) {
		number++
		at, said := f.Path+":"+strconv.Itoa(number), strings.TrimSpace(raw)
		switch {
		case said == "" || said[0] == '#':
		case said[0] == '[':
			wrong := "no NAME matches this pattern: want one of PROGRAM.HOST.OPERATOR.OPERAND, where _ stands for /"
			if section, wellFormed = sectionOf(said); !wellFormed {
				section = said // not "": a location below it must not count as one in the head
				wrong = "want [NAME] or [PATTERN]; the lines below it are not used"
			} else if !matchesNone(section) {
				continue
			}
			f.mistake(at, wrong, false)
		default:
			f.setting(at, said, section, wellFormed)
		}
	}
}

// sectionOf returns the word in the brackets of a section line, and whether the line is well-formed.
func sectionOf(said string) (word string, wellFormed bool) {
	word = strings.TrimSpace(strings.TrimSuffix(said[1:], "]"))
	_, err := path.Match(word, "")
	return word, said[len(said)-1] == ']' && word != "" && err == nil
}

// matchesNone reports whether a section is a pattern that no NAME matches: it has a slash or blank, or no * and no dot.
func matchesNone(section string) bool {
	plain, _, isSet := strings.Cut(section, "[") // a set may be negated, and so match any byte
	return (isSet || strings.ContainsAny(plain, "*?")) && (strings.ContainsAny(plain, "/ ") || !strings.ContainsAny(section, "*."))
}

// setting parses a line of a section ("": the head). If the line that begins the section is not well-formed, setting
// only looks for mistakes.
func (f *File) setting(at, said, section string, wellFormed bool) {
	name, value, is := strings.Cut(said, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	o := OfVariable(name)
	if o == nil || !is {
		text := "want ADLOCK_X=VALUE"
		if is {
			text = UnknownSetting(name, func(o *Option) bool { return o.Where != Nowhere }).Error()
		}
		f.mistake(at, text, seemsLocation(name))
		return
	}
	if why := o.misplaced(value, section); why != "" {
		f.mistake(at, name+" "+why, o.Where == Location)
		return
	}
	if f.Refused != nil {
		f.mistake(at, name+" stands in a file that "+errors.Unwrap(f.Refused).Error(), o.Where == Location)
		return
	}
	if wellFormed {
		f.lines = append(f.lines, line{o, value, at, section})
	}
}

const variablesBegin = "ADLOCK_"

// UnknownSetting is the error for an unknown variable. It suggests the nearest setting for which is() is true.
func UnknownSetting(variable string, is func(*Option) bool) error {
	return unknown{kind: "setting", meant: NearestSetting(variable, is)}
}

// NearestSetting returns the setting that a mistyped variable was meant to be, if is() is true for it, else "".
func NearestSetting(variable string, is func(*Option) bool) string {
	meant := Nearest(strings.TrimPrefix(variable, variablesBegin), bareNames(is))
	if meant == "" {
		return ""
	}
	return variablesBegin + meant
}

// seemsLocation reports whether the text before the = of a line was probably meant to name a location.
func seemsLocation(name string) bool {
	locations := bareNames(func(o *Option) bool { return o.Where == Location })
	noLetter := func(c rune) bool { return c != '_' && (c < 'A' || c > 'Z') }
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToUpper(name), noLetter), func(word string) bool {
		contains := func(location string) bool { return strings.Contains(word, location) }
		return slices.ContainsFunc(locations, contains) || Nearest(strings.TrimPrefix(word, variablesBegin), locations) != ""
	})
}

func bareNames(is func(*Option) bool) (names []string) {
	for i := range Table {
		if is(&Table[i]) {
			names = append(names, strings.TrimPrefix(Table[i].Env, variablesBegin))
		}
	}
	return names
}

// misplaced returns why a setting must not be in that section, or must not have that value; "" if both are allowed.
func (o *Option) misplaced(value, section string) string {
	switch {
	case o.Where == Nowhere:
		return "cannot be set in a file"
	case o.Where != Anywhere && section != "":
		return "belongs above the first section"
	case value != "" && o.Set != nil && o.Set(value) != nil: // only settings without an option have Set; judge checks the rest
		return "has a bad value: " + o.Set(value).Error()
	case o.Where != Location || value == "":
		return ""
	case o.Env == storeVariable && !isAddress(value):
		return "wants " + storeForms + " here (a directory is ADLOCK_DIR)"
	case o.Env != storeVariable && !path.IsAbs(value):
		return "wants a full path"
	}
	return ""
}

// mistake records a mistake at FILE:LINE or FILE. In a file that is not used, only mistakes in locations count.
func (f *File) mistake(at, text string, inLocation bool) {
	err := fault.New(fault.Usage, at, text)
	if inLocation {
		err.Kind = fault.Misconfigured
		f.misplaced = cmp.Or(f.misplaced, err)
	}
	if f.Refused == nil || inLocation {
		f.mistakes = append(f.mistakes, err)
	}
}

// rank returns how closely a line's section fits an atom: 0 for the head, 1 for a pattern that matches NAME, 2 for NAME
// itself or its --name. The rank is below 0 if the section does not concern the atom.
func (l *line) rank(name atom.Name) int {
	matches, _ := path.Match(l.section, string(name))
	switch {
	case l.section == "":
		return 0
	case name == "":
		return -1
	case l.section == string(name), atom.NamedProgram+"."+name.Host()+"."+atom.RunOperator+"."+atom.Canonify(l.section) == string(name):
		return 2
	case matches:
		return 1
	}
	return -1
}

// FromFiles returns the settings for an atom by variable; without a name, those of the heads. The later file wins.
// Within a file the atom's own section wins, then the last matching pattern, then the head. Slots count only for an
// atom with a program of its own: otherwise several runs of each --name could run at once.
func FromFiles(name atom.Name) map[string]Filed {
	found, order := map[string]Filed{}, 0
	noSlots := strings.HasPrefix(string(name), atom.NamedProgram+".")
	for _, f := range Files() {
		for rank := range 3 {
			order++
			section := ""
			for i := range f.lines {
				if l := &f.lines[i]; l.rank(name) == rank && !(noSlots && l.option.Name == "slots") {
					if l.section != section {
						order++
						section = l.section
					}
					found[l.option.Env] = Filed{l.value, Origin{InFile, l.at, order}}
				}
			}
		}
	}
	return found
}

// IsFiled reports whether a file sets one of the variables, for any atom.
func IsFiled(variables ...string) bool {
	return slices.ContainsFunc(Files(), func(f *File) bool {
		return slices.ContainsFunc(f.lines, func(l line) bool { return l.value != "" && slices.Contains(variables, l.option.Env) })
	})
}

type Filed struct {
	Value string // "": not set, or undone by a line without a value
	From  Origin
}

// head returns what a variable is set to in the environment, else in the heads of the files. If a location is
// not in the environment, any file's mistake in a location is an error.
func head(variable string) (Filed, error) {
	if value := os.Getenv(variable); value != "" {
		return Filed{value, Origin{Place: InEnvironment, Word: variable}}, nil
	}
	if OfVariable(variable).Where == Location {
		if err := misplaced(); err != nil {
			return Filed{}, err
		}
	}
	return FromFiles("")[variable], nil
}

func misplaced() error {
	for _, f := range Files() {
		if f.misplaced != nil {
			return f.misplaced
		}
	}
	return nil
}

// FiledLocations returns the lock directory and the store ("": none) that the files set, not the environment.
func FiledLocations() (dir, store string, err error) {
	heads := FromFiles("")
	return heads[dirVariable].Value, heads[storeVariable].Value, misplaced()
}

// judge removes each line whose value the setter of its option (from values) refuses, and returns all mistakes.
func judge(files []*File, values func() []Option) (all []error) {
	if len(files) == 0 {
		return nil
	}
	options := values()
	for _, f := range files {
		f.lines = slices.DeleteFunc(f.lines, func(l line) bool {
			i := slices.IndexFunc(options, func(o Option) bool { return o.Env == l.option.Env })
			if l.value == "" || i < 0 {
				return false
			}
			err := Origins{}.set(&options[i], Origin{Place: InFile, Word: l.at}, l.value)
			if err != nil {
				f.mistake(l.at, l.option.Env+": "+errors.Unwrap(err).Error(), false)
			}
			return err != nil
		})
		all = append(all, f.mistakes...)
	}
	return all
}

// Mistakes returns the mistakes in the settings files. values has the same meaning as for Configure.
func Mistakes(values func() []Option) []error { return judge(Files(), values) }

// MistakesIn returns the mistakes in the text of a file that may become a settings file, sorted by line.
func MistakesIn(path, text string, values func() []Option) []error {
	f := &File{Path: path}
	f.parse(text)
	all := judge([]*File{f}, values)
	slices.SortStableFunc(all, func(a, b error) int { return cmp.Compare(lineOf(a), lineOf(b)) })
	return all
}

func lineOf(mistake error) int {
	var e *fault.Error
	_ = errors.As(mistake, &e) // each mistake is a *fault.Error
	number, _ := strconv.Atoi(e.Object[strings.LastIndexByte(e.Object, ':')+1:])
	return number
}

// toldFile, in the lock directory, lists the settings files with their ctimes at the last report of their mistakes.
const toldFile = "told.settings"

// TellMistakes prints the mistakes once for each lock directory and each change of the files (ctime). While
// dir is missing or refused, it prints them each time.
func TellMistakes(dir string, values func() []Option) {
	all := Mistakes(values)
	if len(all) == 0 {
		return
	}
	var state string
	for _, f := range Files() {
		var st unix.Stat_t
		_ = unix.Stat(f.Path, &st) // 0: unknown
		state += f.Path + " " + strconv.FormatInt(time.Unix(st.Ctim.Unix()).UnixNano(), 10) + "\n"
	}
	told := toldIn(dir, toldFile)
	if text, err := os.ReadFile(told); err == nil && string(text) == state {
		return
	}
	for _, err := range all {
		fault.Report(err)
	}
	_ = os.WriteFile(told, []byte(state), 0o600) // if this fails, the mistakes are printed again
}

// toldIn returns the path of file in dir. It returns "", which cannot be opened, if dir is refused.
func toldIn(dir, file string) string {
	var st unix.Stat_t
	if way.Check(dir, "", nil) != nil || sysfile.Lstatat(unix.AT_FDCWD, dir, &st) != nil || !sysfile.IsOurs(&st) || st.Mode&0o022 != 0 {
		return ""
	}
	return dir + "/" + file
}

type Setting struct {
	Variable string `json:"setting"`
	Value    string `json:"value"` // "": none
	From     string `json:"from"`  // environment, FILE:LINE or default
}

// InForce returns the settings in force for an atom in this process's environment (a cron job has another
// one). Without a name, they are those of atoms without a section.
func InForce(name atom.Name) (all []Setting) {
	filed := FromFiles(name)
	for _, o := range Table {
		s := Setting{o.Env, o.Default, "default"}
		value := os.Getenv(o.Env)
		if o.Env == dirVariable {
			s.Value, _ = Dir() // a caller that needs the directory reports the error
			if store := Trim(os.Getenv(storeVariable)); store != "" && store == s.Value {
				value = store
			}
		}
		if f := filed[o.Env]; f.Value != "" {
			s.Value, s.From = f.Value, f.From.Word
		}
		if value != "" {
			s.Value, s.From = value, "environment"
		}
		if o.Help != "" || s.Value != "" {
			all = append(all, s)
		}
	}
	return all
}
