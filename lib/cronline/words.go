package cronline

import "strings"

type cutter struct {
	rest     string
	word     []byte
	inWord   bool // a word has begun, perhaps an empty one in quotes
	redirect bool // the next word is the file of a redirection
	depth    int  // of parentheses
	words    []string
	all      [][]string
}

// commands splits a command line into simple commands, each into its words without quotes and
// redirections; a substitution is a part of its word. This parser is exact enough for names.
func commands(text string) [][]string {
	c := cutter{rest: text}
	for c.rest != "" {
		switch b := c.next(); b {
		case ' ', '\t', '\r', '\n':
			c.endWord()
		case ';', '&', '|':
			c.endCommand()
		case '(', ')':
			if b == '(' && strings.HasSuffix(string(c.word), "=") && IsAssignment(string(c.word)) {
				c.add("(" + c.until(')') + ")")
				continue
			}
			c.parenthesis(b)
		case '<', '>':
			c.redirection()
		case '#':
			c.hash()
		case '\\':
			c.add(c.take(min(1, len(c.rest))))
		case '\'':
			inside, rest, _ := strings.Cut(c.rest, "'")
			c.add(inside)
			c.rest = rest
		case '"':
			c.add(c.until('"'))
		case '`':
			c.add("`" + c.until('`') + "`")
		case '$':
			c.dollar()
		default:
			c.add(string(b))
		}
	}
	c.endCommand()
	return c.all
}

func (c *cutter) next() byte { return c.take(1)[0] }

func (c *cutter) add(text string) {
	c.word = append(c.word, text...)
	c.inWord = true
}

func (c *cutter) take(n int) string {
	text := c.rest[:n]
	c.rest = c.rest[n:]
	return text
}

func (c *cutter) endWord() {
	if !c.inWord {
		return
	}
	if !c.redirect {
		c.words = append(c.words, string(c.word))
	}
	c.word, c.inWord, c.redirect = nil, false, false
}

func (c *cutter) endCommand() {
	c.endWord()
	if len(c.words) > 0 {
		c.all = append(c.all, c.words)
	}
	c.words, c.redirect = nil, false
}

// parenthesis ends a command. The text before a ) without a ( is dropped: it is a pattern of case.
func (c *cutter) parenthesis(b byte) {
	if b == ')' && c.depth == 0 {
		c.endWord()
		c.words = nil
	}
	c.endCommand()
	if b == '(' {
		c.depth++
	} else if c.depth > 0 {
		c.depth--
	}
}

func (c *cutter) dollar() {
	switch {
	case strings.HasPrefix(c.rest, "("):
		c.next()
		c.add("$(" + c.until(')') + ")")
	case strings.HasPrefix(c.rest, "{"):
		c.next()
		c.add("${" + c.until('}') + "}")
	default:
		c.add("$")
	}
}

// until consumes the text through end, and returns the text before end; without an end, it returns all. An end after a
// backslash or in $(...) does not count, nor a ) in quotes or parentheses.
func (c *cutter) until(end byte) (inside string) {
	whole := c.rest
	for c.rest != "" {
		switch b := c.next(); {
		case b == end:
			return whole[:len(whole)-len(c.rest)-1]
		case b == '\\':
			c.take(min(1, len(c.rest)))
		case b == '(' && end == ')', b == '$' && strings.HasPrefix(c.rest, "("):
			if b == '$' {
				c.next()
			}
			c.until(')')
		case b == '"' && end == ')':
			c.until('"')
		case b == '\'' && end == ')':
			_, c.rest, _ = strings.Cut(c.rest, "'")
		}
	}
	return whole
}

func (c *cutter) redirection() {
	if isNumber(string(c.word)) {
		c.word, c.inWord = nil, false
	}
	c.endWord()
	c.rest = strings.TrimLeft(c.rest, "<>&|")
	c.redirect = true
}

func (c *cutter) hash() {
	if c.inWord {
		c.add("#")
		return
	}
	_, c.rest, _ = strings.Cut(c.rest, "\n")
}
