package supervise

import (
	"io"
	"os"
)

// pipe copies the job's output to Job.Output. As with $(command) in a shell, the copying ends
// when no process is left that could write to the pipe.
type pipe struct {
	reader, writer *os.File
	output         io.Writer
	drained        chan error // closed when all reading is done
	failed         error      // the error of the output; valid once drained is closed
}

func newPipe() (*pipe, error) {
	reader, writer, err := os.Pipe()
	return &pipe{reader: reader, writer: writer, drained: make(chan error, 1)}, err
}

func (r *run) open() (err error) {
	if r.pipe != nil {
		r.pipe.output, err = r.job.Output()
	}
	return err
}

// begin starts to copy, and closes the writing end here. If the output fails, the job gets a broken pipe.
func (p *pipe) begin() {
	p.writer.Close()
	go func() {
		_, p.failed = io.Copy(p.output, p.reader)
		close(p.drained)
		p.reader.Close()
	}()
}

// trouble returns the error of the output if it has failed; nil while the output is still being copied.
func (p *pipe) trouble() error {
	select {
	case <-p.drained:
		return p.failed
	default:
		return nil
	}
}
