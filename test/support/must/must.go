// Package must ends a test at an error of its setup. It imports nothing of the project.
package must

// T is what *testing.T, *testing.B and *rapid.T have in common.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Do fails the test if err is an error.
func Do(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get is for calls with a result: x := must.Get(f())(t) fails the test t if f returns an error.
func Get[V any](value V, err error) func(t T) V {
	return func(t T) V {
		t.Helper()
		Do(t, err)
		return value
	}
}
