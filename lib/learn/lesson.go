package learn

// Lesson updates the state of an atom after a run or a request; nil changes nothing.
type Lesson func(*State)

// Changes tells whether the lesson would change this state.
func (l Lesson) Changes(s State) bool {
	before := s
	if l != nil {
		l(&s)
	}
	return s != before
}
