package process

import "sync"

// kept returns a function that reads a value once and keeps it. It does not keep an error, which
// may pass: the next call reads again.
func kept[T any](read func() (T, error)) func() (T, error) {
	var mutex sync.Mutex
	var value T
	var known bool
	return func() (T, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if known {
			return value, nil
		}
		found, err := read()
		if err == nil {
			value, known = found, true
		}
		return found, err
	}
}
