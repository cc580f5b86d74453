package supervise

import (
	"io"
	"os"
)

// pipe takes what the job prints to Job.Output. All of it has come once no process is
// left that could print: then there is an end of file, as for $(command) in a shell.
type pipe struct {
	reader, writer *os.File
	output         io.Writer
	drained        chan error // closed when nothing more is read
	failed         error      // of the output; known from then on
}

func newPipe() (*pipe, error) {
	reader, writer, err := os.Pipe()
	return &pipe{reader: reader, writer: writer, drained: make(chan error, 1)}, err
}

// open readies Job.Output.
func (r *run) open() (err error) {
	if r.pipe != nil {
		r.pipe.output, err = r.job.Output()
	}
	return err
}

// begin reads, once the job has the other end. Where the output fails no process reads
// any more, and the job finds its pipe broken.
func (p *pipe) begin() {
	p.writer.Close()
	go func() {
		_, p.failed = io.Copy(p.output, p.reader)
		close(p.drained)
		p.reader.Close()
	}()
}

// trouble says why the output did not get all that was printed, if it has come to that.
func (p *pipe) trouble() error {
	select {
	case <-p.drained:
		return p.failed
	default:
		return nil
	}
}
