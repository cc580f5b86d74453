package main

import (
	"context"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestMain(m *testing.M) {
	if err := os.Chdir(helper.Root()); err != nil {
		panic(err)
	}
	helper.Main(m)
}

// The test sets no limit to a measured time, but one to the whole: what hangs is named, and not the test.
func TestTheBenchReportsEveryTableWithPositiveFigures(t *testing.T) {
	need.Tools(t, "go", "dash", "bash", "flock", "find", "timeout")
	b := bench{full: true, rounds: 1, heavy: 1, cycles: 1, contenders: 2, contended: 50 * time.Millisecond, passes: []int{1, 2}, atoms: 3}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	s := must.Get(newScene(ctx, helper.Binary(t)))(t)
	defer s.close()
	results := must.Get(b.measure(s))(t)
	page := markdown(s.machine(b), results)
	for _, r := range results {
		if len(r.columns) > 0 && !strings.Contains(page, "| "+r.letter+": "+r.title+" |") {
			t.Errorf("no table %s: %s in\n%s", r.letter, r.title, page)
		}
		for _, c := range r.columns {
			for name := range c.figures {
				if figure, found := c.spread(name); found && figure.median <= 0 {
					t.Errorf("%s: %s: %s: a figure of %v", r.title, c.shell, name, figure.median)
				}
			}
		}
	}
	for d := xml.NewDecoder(strings.NewReader(string(draw(results)))); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestARatioComparesFiguresOfOneRound(t *testing.T) {
	c := column{"dash", map[string]*figures{
		"flock": {values: []float64{1, 100, 2}}, "adlock": {values: []float64{2, 300, 2}}, "none": {values: []float64{1, missing, 1}},
	}}
	if ratio, found := c.beside("adlock", "flock"); !found || ratio != (spread{2, 2, 3}) && ratio != (spread{1, 2, 3}) {
		t.Errorf("2:1, 300:100 and 2:2 are %v", ratio)
	}
	if _, known := c.reached("none", goal{most: 8}); known {
		t.Error("what is not there has reached a goal")
	}
	if _, known := c.reached("adlock", goal{most: 8, elsewhere: unlimited}); !known {
		t.Error("what is in dash has no goal")
	}
	c.shell = "yash"
	if _, known := c.reached("adlock", goal{most: 8, elsewhere: unlimited}); known {
		t.Error("what is not limited has a goal")
	}
	c.shell = "dash"
	for most, want := range map[float64]bool{2: true, 1.9: false} {
		if reached, known := c.reached("adlock", goal{most: most, elsewhere: 9, beside: "flock"}); !known || reached != want {
			t.Errorf("a ratio of 2 reaches %v: %v", most, reached)
		}
	}
}
