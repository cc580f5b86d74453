package main

import (
	"bytes"
	"encoding/json"
	"io"

	"adlock/lib/atom"
	"adlock/lib/runlog"
)

// encoderOf returns an encoder that writes each value on one line. It does not escape < > &, as the JSON does not go
// into web pages. It escapes characters that do not print, as the JSON may go to a terminal.
func encoderOf(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escaper{w})
	e.SetEscapeHTML(false)
	return e
}

type escaper struct{ w io.Writer }

func (e escaper) Write(text []byte) (int, error) {
	if _, err := e.w.Write(runlog.EscapeJSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// arrayOf returns the rows' objects as one JSON array on one line. Without rows, the array is [] and not null.
func arrayOf[R any](rows []R, object func(R) any) []byte {
	objects := []any{}
	for _, r := range rows {
		objects = append(objects, object(r))
	}
	var text bytes.Buffer
	_ = encoderOf(&text).Encode(objects) // writing to a buffer cannot fail, and each object can be encoded
	return text.Bytes()
}

type atomObject struct {
	Atom     atom.Name `json:"atom"`
	Program  string    `json:"program,omitempty"`
	Host     string    `json:"host,omitempty"`
	Operator string    `json:"operator,omitempty"`
	Operand  string    `json:"operand,omitempty"`
}

func atomOf(c atom.Called) atomObject {
	return atomObject{c.Name, c.Atom.Program, c.Atom.Host, c.Atom.Operator, c.Atom.Operand}
}
