package learn

// Lesson updates the state of an atom after a run or a request; nil changes nothing.
type Lesson func(*State)

// Heed applies lessons in their order, and reports whether they have changed the state.
func (s *State) Heed(lessons ...Lesson) (changed bool) {
	before := *s
	for _, lesson := range lessons {
		if lesson != nil {
			lesson(s)
		}
	}
	return *s != before
}
