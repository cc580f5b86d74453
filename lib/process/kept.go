package process

import "sync"

// kept returns a function that calls read each time until read has succeeded once, and then returns that value.
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
