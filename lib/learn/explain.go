package learn

import (
	"math"
	"strconv"
	"time"

	"adlock/lib/limit"
)

const noMore = ", but no more than a week" // Ceiling

// ExplainExpireAfter describes, on one line, how ExpireAfter(ifElapsed) was computed.
func (s State) ExplainExpireAfter(ifElapsed time.Duration) string {
	if s.Runs < Enough {
		return s.fewer() + "no limit until there are " + strconv.Itoa(Enough)
	}
	text, floor := s.explainEstimate(), s.least(ifElapsed)
	if s.estimate() < floor {
		text += ", at least " + whole(floor)
		if floor > Floor {
			text += " as IfElapsed is"
		}
	}
	if now := s.ExpireAfter(ifElapsed); now != max(floor, s.estimate().Round(time.Second)) {
		text += s.explainDoublings(max(floor, s.estimate()), now)
	}
	return text
}

func (s State) explainEstimate() string {
	spread, product := math.Exp(s.spread()), s.runtime(s.mean+width*s.spread())
	text := s.runs() + ": typically " + short(s.Typical()) + ", give or take x" + decimal(spread) +
		": " + short(s.Typical()) + " x " + decimal(spread) + "^4"
	if product == Ceiling {
		text += noMore + ": " + whole(product)
	} else {
		text += " = " + whole(product)
	}
	if s.wide() == beyond*s.Longest() {
		text += ", but no more than " + strconv.Itoa(beyond) + " times the longest run: " + whole(s.wide())
	}
	if s.usual() > s.wide() {
		text += ", while so few are known " + whole(s.usual())
	}
	if s.rare() > s.usual() {
		text += ", but the longest run of late took " + whole(s.Longest())
		if s.rare() < s.Longest() {
			text += ", of which " + whole(s.rare()) + " count"
		}
	}
	return text
}

func (s State) explainDoublings(d, now time.Duration) string {
	times := s.doublings()
	text := ", doubled " + strconv.Itoa(times) + " times as runs were ended by force"
	if times == 1 {
		text = ", doubled once as a run was ended by force"
	}
	switch {
	case now == Ceiling:
		text += noMore
	case now < doubled(d, times).Round(time.Second):
		text += ", but no more than " + strconv.Itoa(reach) + " x " + short(max(leastTypical, s.Typical()))
	}
	return text + ": " + whole(now)
}

// ExplainIfElapsed describes, on one line, how IfElapsed was computed.
func (s State) ExplainIfElapsed() string {
	text := s.fewer() + whole(LeastIfElapsed)
	if s.Runs >= Enough {
		text = s.runs() + ": typically " + short(s.Typical())
		if s.interval() > s.Typical().Round(time.Second) {
			text += ", at least " + whole(s.interval())
		}
	}
	if s.stretched > 0 {
		text += ", stretched x" + strconv.Itoa(1<<s.stretched) + " as it was asked for too often = " + whole(s.IfElapsed())
	}
	return text
}

func (s State) runs() string {
	if s.Runs == 1 {
		return "1 successful run"
	}
	return strconv.Itoa(s.Runs) + " successful runs"
}

func (s State) fewer() string { return s.runs() + ", fewer than " + strconv.Itoa(Enough) + ": " }

func whole(d time.Duration) string { return limit.Format(d.Round(time.Second)) }

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func short(d time.Duration) string {
	if d < 10*time.Second {
		return decimal(d.Seconds()) + "s"
	}
	return whole(d)
}
