package main

import (
	"bytes"
	"encoding/json"
	"io"

	"adlock/lib/atom"
	"adlock/lib/runlog"
)

// encoderOf returns an encoder that writes one value a line to w. It does not escape < > &, as this
// JSON does not go into web pages. It escapes characters that do not print, as the output may go to
// a terminal.
func encoderOf(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escaper{w})
	e.SetEscapeHTML(false)
	return e
}

// escaper escapes what a json.Encoder writes to it; each write is a whole value.
type escaper struct{ w io.Writer }

func (e escaper) Write(text []byte) (int, error) {
	if _, err := e.w.Write(runlog.EscapeJSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// arrayOf returns the objects of rows as one array on one line; without rows it is [], not null.
func arrayOf[R any](rows []R, object func(R) any) []byte {
	objects := []any{}
	for _, r := range rows {
		objects = append(objects, object(r))
	}
	var text bytes.Buffer
	_ = encoderOf(&text).Encode(objects) // a buffer takes everything, and each object can be encoded
	return text.Bytes()
}

// atomObject identifies the atom of a JSON object. If only NAME is known, the other fields are left
// out.
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
