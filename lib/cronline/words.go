package crontab

import "strings"

// cutter cuts a command line into simple commands, and those into words.
type cutter struct {
	rest     string
	word     []byte
	inWord   bool // an empty word in quotes is one too
	redirect bool // the next word is the file of a redirection
	words    []string
	all      [][]string
}

// simpleCommands cuts a command line into the simple commands in it, each into its words
// without quotes and redirections. It is good enough for a name, and to see who is
// called: what a substitution in quotes does is not looked at.
func simpleCommands(text string) [][]string {
	c := cutter{rest: text}
	for c.rest != "" {
		b := c.rest[0]
		c.rest = c.rest[1:]
		switch b {
		case ' ', '\t', '\r', '\n':
			c.endWord()
		case ';', '&', '|', '(', ')', '`':
			c.endCommand()
		case '<', '>':
			c.redirection()
		case '#':
			c.hash()
		case '\\':
			c.add(c.take(min(1, len(c.rest))))
		case '\'', '"':
			inside, rest, _ := strings.Cut(c.rest, string(b))
			c.add(inside)
			c.rest = rest
		default:
			c.add(string(b))
		}
	}
	c.endCommand()
	return c.all
}

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

// redirection leaves out the descriptor before the sign, and the file behind it.
func (c *cutter) redirection() {
	if isNumber(string(c.word)) {
		c.word, c.inWord = nil, false
	}
	c.endWord()
	c.rest = strings.TrimLeft(c.rest, "<>&|")
	c.redirect = true
}

// hash leaves out a comment.
func (c *cutter) hash() {
	if c.inWord {
		c.add("#")
		return
	}
	_, c.rest, _ = strings.Cut(c.rest, "\n")
}
