package quantile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func trueQuantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

func TestFewValuesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.Int64Min(0), func(n int64) time.Duration { return time.Duration(n) }), 1, 200).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var d Digest
		for _, v := range values {
			d.Add(v)
		}
		if got, want := d.Quantile(q), trueQuantile(values, q); got != want || !d.Exact() {
			t.Fatalf("quantile %v of %v is %v, want %v", q, values, got, want)
		}
	})
}

func TestManyValuesAreWithinOnePercent(t *testing.T) {
	for name, draw := range map[string]func(*rand.Rand) float64{
		"lognormal": func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()*1.5) * 1e10 },
		"constant":  func(*rand.Rand) float64 { return 6e10 },
		"with 0":    func(r *rand.Rand) float64 { return float64(r.IntN(3)) * 1e9 },
		"extremes":  func(r *rand.Rand) float64 { return math.Pow(9e18, r.Float64()) },
	} {
		r := rand.New(rand.NewPCG(1, 2))
		var d Digest
		var values []time.Duration
		for range 10 * fits {
			v := time.Duration(draw(r))
			d.Add(v)
			values = append(values, v)
		}
		if d.Exact() || len(d.buckets) > 2300 {
			t.Errorf("%s: %d buckets, exact %v", name, len(d.buckets), d.Exact())
		}
		for _, q := range []float64{0, 0.01, 0.5, 0.95, 0.999, 1} {
			got, want := d.Quantile(q), trueQuantile(values, q)
			if math.Abs(float64(got-want)) > 0.0101*float64(want)+1 {
				t.Errorf("%s: quantile %v is %v, want %v", name, q, got, want)
			}
		}
		if d.Min() != slices.Min(values) || d.Max() != slices.Max(values) {
			t.Errorf("%s: %v to %v", name, d.Min(), d.Max())
		}
	}
}

func TestEmptyDigestIsZero(t *testing.T) {
	var d Digest
	if d.Quantile(0.5) != 0 || d.Min() != 0 || d.Max() != 0 || d.Count() != 0 {
		t.Error("not zero")
	}
}
