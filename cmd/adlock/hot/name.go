package hot

import (
	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/name"
)

// printName prints NAME of an atom, for a shell that cannot build it.
func printName(args []string) (int, error) {
	if len(args) != 4 {
		return 0, exit.New(exit.Usage, "name", "wants PROGRAM HOST OPERATOR OPERAND")
	}
	a, err := name.New(args[0], args[1], args[2], args[3])
	if err != nil {
		return 0, err
	}
	return 0, command.PrintLine(a.Name())
}
