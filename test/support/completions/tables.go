package completions

import (
	"fmt"
	"strings"
)

// bashTable is a function that prints a verb's options, each as NAME or NAME:KIND, and the kind
// of its arguments.
func bashTable(all []verb) string {
	var w strings.Builder
	var list []string
	for _, v := range all {
		list = append(list, v.Name)
	}
	fmt.Fprintf(&w, "_adlock_verbs='%s'\n_adlock_events='%s'\n\n_adlock_table() {\n\tcase $1 in\n", strings.Join(list, " "), eventKinds(all))
	for _, v := range all {
		var words []string
		for _, o := range v.options {
			for _, name := range o.names() {
				words = append(words, strings.TrimSuffix(name+":"+o.kind, ":"))
			}
		}
		fmt.Fprintf(&w, "\t%s)\n\t\targs=%s options='%s'\n\t\t;;\n", v.Name, v.args, strings.Join(words, " "))
	}
	w.WriteString("\t*) return 1 ;;\n\tesac\n}\n")
	return w.String()
}

// zshTable is bashTable with descriptions, and a function that sets the lists of verbs and
// events.
func zshTable(all []verb) string {
	var w strings.Builder
	w.WriteString("_adlock_lists() {\n  _adlock_verbs=(\n")
	for _, v := range all {
		fmt.Fprintf(&w, "    %s\n", zshQuoted(v.Name+":"+v.Does))
	}
	fmt.Fprintf(&w, "  )\n  _adlock_events=(%s)\n}\n\n_adlock_table() {\n  case $1 in\n", eventKinds(all))
	for _, v := range all {
		fmt.Fprintf(&w, "  (%s)\n    args=%s\n    options=(\n", v.Name, v.args)
		var takes []string
		for _, o := range v.options {
			for _, name := range o.names() {
				fmt.Fprintf(&w, "      %s\n", zshQuoted(name+":"+o.Help))
				if o.kind != "" {
					takes = append(takes, name+" "+o.kind)
				}
			}
		}
		fmt.Fprintf(&w, "    )\n    takes=(%s)\n    ;;\n", strings.Join(takes, " "))
	}
	w.WriteString("  (*) return 1 ;;\n  esac\n}\n")
	return w.String()
}

// fishTable has the commands that declare options to fish, and functions: one lists the verbs;
// two print a verb's options with values, and the kind of its arguments.
func fishTable(all []verb) string {
	var w, takes, args strings.Builder
	var list []string
	for _, v := range all {
		list = append(list, "\\\n        "+v.Name+" "+fishQuoted(v.Does))
		var names []string
		for _, o := range v.options {
			line := "complete -c adlock -n '__adlock_wants_option " + v.Name + "' -l " + o.Name
			if o.Alias != "" {
				line += " -s " + o.Alias
			}
			fmt.Fprintf(&w, "%s%s -d %s\n", line, fishValue[o.kind], fishQuoted(o.Help))
			if o.kind != "" {
				names = append(names, o.names()...)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&takes, "        case %s\n            printf '%%s\\n' %s\n", v.Name, strings.Join(names, " "))
		}
		if v.args != "none" {
			fmt.Fprintf(&args, "        case %s\n            echo %s\n", v.Name, v.args)
		}
	}
	fmt.Fprintf(&w, "\nset -g __adlock_events %s\n", eventKinds(all))
	fmt.Fprintf(&w, "\nfunction __adlock_verbs\n    printf '%%s\\t%%s\\n' %s\nend\n", strings.Join(list, " "))
	fmt.Fprintf(&w, "\nfunction __adlock_takes\n    switch $argv[1]\n%s    end\nend\n", takes.String())
	fmt.Fprintf(&w, "\nfunction __adlock_args\n    switch $argv[1]\n%s    end\nend\n", args.String())
	return w.String()
}

// fishValue is the way in which fish completes each kind of value.
var fishValue = map[string]string{
	"": "", "none": " -x", "file": " -r -F", "shell": " -x -a '(__fish_complete_command)'",
	"store": " -x -a '(__adlock_stores)'", "atom": " -x -a '(__adlock_names atom)'", "name": " -x -a '(__adlock_names name)'",
	"process": " -x -a '(__fish_complete_pids)'", "when": " -x -a 'today yesterday now'", "event": " -x -a '(__fish_append , $__adlock_events)'",
}

func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
