package supervise

import (
	"io"
	"os"
)

// pipe copies the job's output to Job.Output. The output ends when no process is left that could
// print: then there is an end of file, as for $(command) in a shell.
type pipe struct {
	reader, writer *os.File
	output         io.Writer
	drained        chan error // closed when all reading is done
	failed         error      // error of the output; valid from then on
}

func newPipe() (*pipe, error) {
	reader, writer, err := os.Pipe()
	return &pipe{reader: reader, writer: writer, drained: make(chan error, 1)}, err
}

// open prepares Job.Output.
func (r *run) open() (err error) {
	if r.pipe != nil {
		r.pipe.output, err = r.job.Output()
	}
	return err
}

// begin starts to read when the job has the other end. If the output fails, it stops reading, and
// the job gets a broken pipe.
func (p *pipe) begin() {
	p.writer.Close()
	go func() {
		_, p.failed = io.Copy(p.output, p.reader)
		close(p.drained)
		p.reader.Close()
	}()
}

// trouble returns why the output did not get all that was printed, if that happened.
func (p *pipe) trouble() error {
	select {
	case <-p.drained:
		return p.failed
	default:
		return nil
	}
}
