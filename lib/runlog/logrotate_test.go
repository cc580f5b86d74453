package runlog

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/must"
)

func init() { Unzip = func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) } }

// zipped is a text as gzip(1) compresses it.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(z.Write([]byte(text)))(t)
	must.Do(t, z.Close())
	return b.String()
}

func TestFilesOfLogrotateAreReadOldestFirst(t *testing.T) {
	dir := folderOf(t)
	addText(t, currentOf(dir), goodLine+"a\n")
	addText(t, olderOf(dir), goodLine+"b\n")
	addText(t, currentOf(dir)+".2", goodLine+"c\n")
	addText(t, currentOf(dir)+".2.gz", "half of it") // being written
	addText(t, currentOf(dir)+".3.gz", zipped(t, goodLine+"d\n"))
	addText(t, currentOf(dir)+".6.gz", zipped(t, goodLine+"e\n"))
	same(t, operands(t, dir), "d", "c", "b", "a")
	for _, path := range []string{currentOf(dir), olderOf(dir)} {
		must.Do(t, os.Remove(path))
	}
	if hosts, err := Hosts(dir); err != nil || !slices.Equal(hosts, []string{testHost}) {
		t.Errorf("%q, %v", hosts, err)
	}
	same(t, operands(t, dir), "d", "c")
	addText(t, currentOf(dir)+".1.gz", zipped(t, goodLine+"b\n"))
	same(t, operands(t, dir), "d", "c", "b")
	must.Do(t, os.Mkdir(currentOf(dir)+".3", 0o700)) // it hides what is older, not what is newer
	same(t, operands(t, dir), "unread", "c", "b")
}

func TestNoEventIsLostOrDoubledWhileLogrotateRenames(t *testing.T) {
	dir := folderOf(t)
	addText(t, currentOf(dir), goodLine+"a\n")
	addText(t, olderOf(dir), goodLine+"b\n")
	addText(t, currentOf(dir)+".2", goodLine+"c\n")
	addText(t, currentOf(dir)+".4", goodLine+"d\n") // .3 has just been renamed
	same(t, operands(t, dir), "d", "c", "b", "a")
	must.Do(t, os.Link(currentOf(dir)+".2", currentOf(dir)+".3")) // .2 is renamed as soon as it is open
	same(t, operands(t, dir), "d", "c", "b", "a")
}

func TestADamagedCompressedFileIsReadUpToTheDamage(t *testing.T) {
	dir := folderOf(t)
	addText(t, currentOf(dir), goodLine+"a\n")
	whole := zipped(t, strings.Repeat(goodLine+"b\n", 3))
	addText(t, currentOf(dir)+".2.gz", whole[:len(whole)-6])
	addText(t, currentOf(dir)+".3.gz", "no such text")
	for _, most := range []int64{1 << 62, 1 << 20} {
		same(t, lastOperands(t, dir, most), "damaged:0", "b", "b", "b", "damaged:3", "a")
	}
}

func TestReadYieldsTheNewestLinesOfTheRotatedFiles(t *testing.T) {
	dir := folderOf(t)
	line := int64(len(goodLine) + 2)
	addText(t, currentOf(dir), goodLine+"a\n")
	addText(t, olderOf(dir), goodLine+"b\n")
	addText(t, currentOf(dir)+".2", goodLine+"c\n")
	addText(t, currentOf(dir)+".3.gz", zipped(t, strings.Repeat(goodLine+"d\n", 2)))
	addText(t, currentOf(dir)+".4.gz", zipped(t, goodLine+"e\n"+strings.Repeat("\x00", 64<<20))) // 64 KiB
	for most, want := range map[int64]string{
		line: "cut a", 2 * line: "cut b a", 3 * line: "cut c b a", 5*line - 1: "cut c b a",
		5 * line: "cut d d c b a", 1 << 20: "cut d d c b a",
		line - 1: "", // no whole line is left
	} {
		check.Equal(t, fmt.Sprint("the last ", most), strings.Join(lastOperands(t, dir, most), " "), want)
	}
	addText(t, currentOf(dir), strings.Repeat(goodLine+"a\n", 2))
	if got := strings.Join(lastOperands(t, dir, 2*line), " "); got != "cut a a" && got != "cut a" {
		t.Error(got)
	}
}
