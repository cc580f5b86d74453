package lockfile

import (
	"bytes"

	"adlock/lib/process"
)

// wrecked reports whether damaged content is what a loss of power before this boot leaves: zeros, or a record
// that is cut short. The owner cannot live: only this machine writes the file system, and has booted since.
func (a *Active) wrecked(content []byte) bool {
	cut := !bytes.Contains(content, []byte("\nend=\n")) || bytes.IndexByte(content, 0) >= 0
	return cut && process.BeforeBoot(a.Modified()) && isLocal(a.fd)
}
