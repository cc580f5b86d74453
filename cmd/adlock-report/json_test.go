package main

import (
	"strings"
	"testing"
)

func TestTextIsWrittenAsItIs(t *testing.T) {
	var w strings.Builder
	if err := encoderOf(&w).Encode([]string{"<a&b>"}); err != nil || w.String() != "[\"<a&b>\"]\n" {
		t.Errorf("%s, %v", w.String(), err)
	}
}
