package metrics

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// Values are samples by series, in the form name{labels}.
type Values map[string]float64

// ReadValues reads what Text has written; nil if there is no file. Counters on damaged lines begin again at zero.
func ReadValues(path string) (Values, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values := Values{}
	for line := range strings.Lines(string(text)) {
		space := strings.LastIndexByte(line, ' ') // labels may have spaces, a value has none
		number, err := strconv.ParseFloat(strings.TrimSuffix(line[space+1:], "\n"), 64)
		if space >= 0 && err == nil && !math.IsNaN(number) && strings.HasPrefix(line, "adlock_") {
			values[line[:space]] = number
		}
	}
	return values, nil
}

func (v Values) time(series string) (time.Time, bool) {
	value, there := v[series]
	if !there || !(value >= 0 && value < 1<<33) {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(math.Round(value * 1000))), true
}
