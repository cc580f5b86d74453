package config

import (
	"strings"
	"unicode/utf8"
)

func (p *Program) Help() string {
	var lines [][2]string
	for i := range p.Verbs {
		if v := &p.Verbs[i]; v.Does != "" {
			lines = append(lines, [2]string{v.Name, v.Does})
		}
	}
	text := "usage: " + p.Name + " VERB [OPTION...] [ARG...]\n\n" + p.Does + "\n\nverbs:\n" + columns(lines) +
		"\n" + p.Name + " help VERB tells of one verb, " + p.Name + " version which version this is.\n"
	if p.Notes != "" {
		text += "\n" + p.Notes + "\n"
	}
	return text
}

func (p *Program) HelpOf(v *Verb) string {
	lines := [][2]string{}
	for _, o := range v.options() {
		if o.Help != "" {
			lines = append(lines, [2]string{o.synopsis(), o.description()})
		}
	}
	usage := "usage: " + p.Name + " " + v.Name + " "
	if len(lines) > 0 {
		usage += "[OPTION...] "
	}
	usage += v.Args
	lines = append(lines, [2]string{"--help, -h", "this text"})
	text := strings.TrimSpace(usage) + "\n\n" + v.Does + "\n\noptions:\n" + columns(lines)
	if v.More != nil {
		for _, list := range v.More() {
			text += "\n" + list.Title + ":\n" + columns(list.Lines)
		}
	}
	return text
}

func (v *Verb) options() []Option {
	if v.Options == nil {
		return nil
	}
	return v.Options()
}

func (o *Option) synopsis() string {
	text := "--" + o.Name
	switch {
	case len(o.Alias) == 1:
		text += ", -" + o.Alias
	case o.Alias != "":
		text += ", --" + o.Alias
	}
	if o.Arg != "" {
		text += " " + o.Arg
	}
	return text
}

func (o *Option) description() string {
	text := o.meaning()
	if o.Env != "" {
		text += " [$" + o.Env + "]"
	}
	return text
}

func (o *Option) meaning() string {
	if o.Default == "" {
		return o.Help
	}
	return o.Help + " (default " + o.Default + ")"
}

func columns(lines [][2]string) string {
	width := 0
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line[0]))
	}
	var text strings.Builder
	for _, line := range lines {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(line[0]))
		text.WriteString("  " + line[0] + pad + "  " + line[1] + "\n")
	}
	return text.String()
}

// fold breaks each line of more than columns characters at a space, and indents the rest to where the line's text
// begins, after its last two spaces. A line whose text would be narrower than 24 characters stays whole.
func fold(text string, columns int) string {
	var folded strings.Builder
	for line := range strings.Lines(text) {
		indent := strings.LastIndex(line, "  ")
		if indent >= 0 {
			indent += len("  ")
		}
		folded.WriteString(foldLine(line, max(indent, 0), columns))
	}
	return folded.String()
}

func foldLine(line string, indent, columns int) string {
	if columns-indent < 24 {
		return line
	}
	var folded strings.Builder
	for utf8.RuneCountInString(line) > columns+len("\n") {
		end := strings.LastIndex(line[:columns+1], " ")
		if end <= indent {
			break
		}
		folded.WriteString(line[:end] + "\n")
		line = strings.Repeat(" ", indent) + line[end+1:]
	}
	return folded.String() + line
}
