package lists

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/internal/copyfile"
	"github.com/penstock-go/penstock/list"
)

// The file of a copy has a line with the format and the checksum of the next one, then a
// line that says what follows, then the text of the list. The time of the file is when
// the source was last known to have it.
const (
	copyTitle  = "last good copy of a list"
	copyFormat = 1
	maxHead    = 64 << 10 // bytes of the two lines
)

// copyHead is the first line of a copy.
type copyHead struct {
	Penstock string `json:"penstock"` // copyTitle
	Format   int    `json:"format"`
	SHA256   string `json:"sha256"` // of the next line, in hexadecimal
}

// copyInfo is the second line: what the copy is of.
type copyInfo struct {
	App      string `json:"app"`
	Source   string `json:"source"`
	Document string `json:"document"`
	Revision int64  `json:"revision,omitempty"` // of the document
	SHA256   string `json:"sha256"`             // of the text, in hexadecimal
}

// storedCopy is a copy in its file.
type storedCopy struct {
	copyInfo
	path   string
	digest Digest // of the text
	size   int64  // of the file
	at     clock.Instant
}

// head returns the two lines of a copy.
func (i copyInfo) head() ([]byte, error) {
	info, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	info = append(info, '\n')
	sum := sha256.Sum256(info)
	head, err := json.Marshal(copyHead{Penstock: copyTitle, Format: copyFormat, SHA256: hex.EncodeToString(sum[:])})
	return append(append(head, '\n'), info...), err
}

// readHead reads the two lines of a copy.
func readHead(from *bufio.Reader) (copyInfo, Digest, error) {
	var head copyHead
	var info copyInfo
	first, err := from.ReadBytes('\n')
	if err != nil {
		return info, Digest{}, errors.New("it is no copy of a list, or was cut off")
	}
	switch err := json.Unmarshal(first, &head); {
	case err != nil || head.Penstock != copyTitle || head.Format < 1:
		return info, Digest{}, errors.New("it is no copy of a list, or was changed at its beginning")
	case head.Format > copyFormat:
		return info, Digest{}, fmt.Errorf("it has format %d and this program reads %d: a later version wrote it", head.Format, copyFormat)
	}
	second, _ := from.ReadBytes('\n')
	sum := sha256.Sum256(second)
	if hex.EncodeToString(sum[:]) != head.SHA256 {
		return info, Digest{}, errors.New("its checksum does not match: it was cut off or changed since it was written")
	}
	err = json.Unmarshal(second, &info)
	digest, hexErr := hex.DecodeString(info.SHA256)
	if err != nil || hexErr != nil || len(digest) != sha256.Size {
		return info, Digest{}, errors.New("it is whole but no program wrote it like that")
	}
	return info, Digest(digest), nil
}

// readCopy reads what a copy is of.
func readCopy(path string) (storedCopy, error) {
	file, err := copyfile.Open(path)
	if err != nil {
		return storedCopy{}, err
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return storedCopy{}, copyfile.WithoutPath(err)
	}
	if stat.Size() > list.MaxSize+maxHead { // before time is spent on reading it
		return storedCopy{}, fmt.Errorf("it has %d bytes, and the text of a list at most %d", stat.Size(), list.MaxSize)
	}
	info, digest, err := readHead(bufio.NewReader(io.LimitReader(file, maxHead)))
	at := clock.Instant(max(1, stat.ModTime().UnixNano()))
	return storedCopy{copyInfo: info, path: path, digest: digest, size: stat.Size(), at: at}, err
}

// open opens the text of a copy.
func (c storedCopy) open() (Text, error) {
	file, err := copyfile.Open(c.path)
	if err != nil {
		return Text{}, err
	}
	text := bufio.NewReader(file)
	if _, _, err := readHead(text); err != nil {
		_ = file.Close()
		return Text{}, err
	}
	return Text{copyText{text, file}, c.digest}, nil
}

type copyText struct {
	io.Reader
	io.Closer
}

// draft is a copy that is being written, or that is written and not in its place yet. Errors
// of the disk do not keep a list from coming into force: a draft remembers the first.
type draft struct {
	info   copyInfo
	digest Digest
	file   *os.File // nil once it is closed
	name   string
	size   int64
	most   int64 // bytes it may have
	err    error
}

var errTooLarge = errors.New("lists: there is no space left for it among the copies: raise Config.MaxCopies")

// begin begins a copy that is to be at a path.
func begin(path string, info copyInfo, digest Digest, most int64) *draft {
	info.SHA256 = hex.EncodeToString(digest[:])
	d := &draft{info: info, digest: digest, most: most}
	head, err := info.head()
	if err == nil {
		d.file, err = copyfile.Create(path)
	}
	if d.err = err; err != nil {
		return d
	}
	d.name = d.file.Name()
	_, _ = d.Write(head)
	return d
}

// Write implements [io.Writer]. It returns no error.
func (d *draft) Write(p []byte) (int, error) {
	if d.err == nil && d.size+int64(len(p)) > d.most {
		d.err = errTooLarge
	}
	if d.err == nil {
		var n int
		n, d.err = d.file.Write(p)
		d.size += int64(n)
	}
	return len(p), nil
}

// finish ends the writing, and removes the file after an error.
func (d *draft) finish() {
	if d.file == nil {
		return
	}
	d.err = errors.Join(d.err, d.file.Sync(), d.file.Close())
	d.file = nil
	if d.err != nil {
		d.discard()
	}
}

// discard removes the file.
func (d *draft) discard() {
	if d == nil || d.name == "" {
		return
	}
	if d.file != nil {
		_ = d.file.Close()
		d.file = nil
	}
	_ = os.Remove(d.name)
	d.name = ""
}
