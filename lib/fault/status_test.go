package fault

import (
	"errors"
	"io/fs"
	"testing"
)

func TestEveryKindHasItsStatus(t *testing.T) {
	for err, want := range map[error]int{
		nil:                         StatusOK,
		errors.New("unheard of"):    StatusSystem,
		fs.ErrPermission:            StatusSystem, // it has no error number of the system
		New(Usage, "x", "y"):        64,
		New(Unavailable, "x", "y"):  69,
		New(System, "x", "y"):       71,
		New(CannotCreate, "x", "y"): 73,
		New(IO, "x", "y"):           74,
		New(Denied, "x", "y"):       75,
		New(NotPermitted, "x", "y"): 77,
		New(NotRunnable, "x", "y"):  126,
		New(NoCommand, "x", "y"):    127,
	} {
		if got := StatusOf(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
