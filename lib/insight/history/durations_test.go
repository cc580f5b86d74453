package history

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// share is how much of the values is at most v.
func share(values []time.Duration, v time.Duration) float64 {
	n := 0
	for _, value := range values {
		if value <= v {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

func TestQuantileIsTheSmallestValueThatCoversItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.Int64Min(0), func(n int64) time.Duration { return time.Duration(n) }), 1, 200).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var d Durations
		for _, v := range values {
			d.Add(v)
		}
		got := d.Quantile(q)
		if !slices.Contains(values, got) || share(values, got) < q {
			t.Fatalf("quantile %v of %v is %v", q, values, got)
		}
		for _, v := range values {
			if v < got && share(values, v) >= q {
				t.Fatalf("quantile %v of %v is %v, though %v would do", q, values, got, v)
			}
		}
		if d.Count() != len(values) || d.Min() != slices.Min(values) || d.Max() != slices.Max(values) {
			t.Fatalf("%d from %v to %v", d.Count(), d.Min(), d.Max())
		}
	})
}

func TestDurationsMayBeAddedAfterAQuery(t *testing.T) {
	var d Durations
	if d.Quantile(0.5) != 0 || d.Min() != 0 || d.Max() != 0 || d.Count() != 0 {
		t.Error("no durations are not zero")
	}
	for _, v := range []time.Duration{3, 1, -5} {
		d.Add(v)
		d.Max()
	}
	if d.Min() != 0 || d.Quantile(0.5) != 1 || d.Max() != 3 {
		t.Errorf("%v, %v, %v", d.Min(), d.Quantile(0.5), d.Max())
	}
}

func TestByTimeWeighsEachDurationWithItself(t *testing.T) {
	var d Durations
	for _, v := range []time.Duration{1, 1, 1, 1, 1, 1, 4} {
		d.Add(v)
	}
	if d.Sum() != 10 || d.ByTime(0.6) != 1 || d.ByTime(0.61) != 4 || d.ByTime(1) != 4 {
		t.Errorf("%v: %v, %v, %v", d.Sum(), d.ByTime(0.6), d.ByTime(0.61), d.ByTime(1))
	}
	if shorter := d.Below(4); shorter.Count() != 6 || shorter.Max() != 1 || d.Count() != 7 {
		t.Errorf("%d below 4, %d in all", shorter.Count(), d.Count())
	}
}
