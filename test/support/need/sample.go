package need

// Sample returns how many of all rounds of a test `make test` has: a fourth. A soak has all.
func Sample(all int) int {
	if Soak {
		return all
	}
	return all / 4
}
