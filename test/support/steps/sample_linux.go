package steps

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"

	"adlock/test/support/need"
)

// Drawn plays each scenario once, and returns by its name the calls that a test is to try: in a
// soak all. Otherwise one call is drawn for each place in the code, since most places are passed in
// many scenarios. They are the same in each run, unless ADLOCK_TEST_SEED (any text) draws others.
func Drawn(t *testing.T) map[string][]Call {
	t.Helper()
	all := make([][]Call, len(Scenarios))
	for i, scenario := range Scenarios { // not in subtests, which -run might leave out
		all[i] = scenario.Calls(t)
	}
	drawn := map[string][]Call{}
	for i, scenario := range Scenarios {
		drawn[scenario.Name] = all[i]
	}
	if !need.Soak {
		drawn = draw(t, all)
	}
	return drawn
}

// site is one call: the indices of its scenario, of its kind, and of itself.
type site struct{ scenario, call, point int }

// draw leaves one point for each place, and counts the places of a call in Turn.
func draw(t *testing.T, all [][]Call) map[string][]Call {
	t.Helper()
	var places []string
	passed := map[string][]site{}
	for i, calls := range all {
		for j, call := range calls {
			for k, point := range call.Points {
				place := call.Name + "(" + point.Same
				if passed[place] == nil {
					places = append(places, place)
				}
				passed[place] = append(passed[place], site{i, j, k})
			}
		}
	}
	if len(places) < 80 {
		t.Errorf("%d places: the calls were not found", len(places))
	}
	drawn, turns := map[string][]Call{}, map[string]uint64{}
	for _, place := range places {
		at := passed[place][chance(place)%uint64(len(passed[place]))]
		name, call := Scenarios[at.scenario].Name, all[at.scenario][at.call]
		point := call.Points[at.point]
		point.Turn = int(chance(call.Name)%100 + turns[call.Name])
		turns[call.Name]++
		drawn[name] = append(drawn[name], Call{call.Name, []Point{point}})
	}
	return drawn
}

// chance is a number that the seed and the words give.
func chance(words string) uint64 {
	sum := fnv.New64a()
	fmt.Fprint(sum, os.Getenv("ADLOCK_TEST_SEED"), words)
	return sum.Sum64() >> 8
}
