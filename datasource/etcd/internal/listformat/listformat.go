// Package listformat is how a list stands in etcd: a manifest, which is small and is
// what instances watch, and the text of the list in chunks, because a value in etcd
// can have 1.5 MiB at most.
//
// The keys of a chunk contain the SHA-256 of the whole text. So chunks of different
// versions never mix, and the manifest, which is written last, switches from one
// complete version to another.
package listformat

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/penstock-go/penstock/list"
)

const (
	// ChunkSize is how many bytes of text are in a chunk. Compressed they are fewer,
	// or a few more if the text is random.
	ChunkSize = 1 << 20

	// MaxSize is how many bytes the text of a list may have.
	MaxSize = list.MaxSize

	manifestVersion = 1
)

// ManifestKeys returns the prefix of the keys of manifests below the prefix of all
// keys of lists. The name of a list follows.
func ManifestKeys(lists string) string { return lists + "manifest/" }

// HistoryKey returns the key of the former versions of a list. Their chunks are those of
// versions.
func HistoryKey(lists, name string) string { return lists + "history/" + name }

// ChunkKeys returns the prefix of the keys of all chunks of a list.
func ChunkKeys(lists, name string) string { return lists + "chunk/" + name + "/" }

// VersionKeys returns the prefix of the keys of the chunks of one version of a list.
func VersionKeys(lists, name string, digest Digest) string {
	return ChunkKeys(lists, name) + digest.String() + "/"
}

// ChunkKey returns the key of a chunk.
func ChunkKey(lists, name string, digest Digest, index int) string {
	return fmt.Sprintf("%s%06d", VersionKeys(lists, name, digest), index)
}

// Digest is the SHA-256 of the text of a list.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != 2*len(d) {
		return errors.New("the digest is not a SHA-256 in hexadecimal digits")
	}
	if _, err := hex.Decode(d[:], text); err != nil {
		return fmt.Errorf("the digest is not a SHA-256 in hexadecimal digits: %w", err)
	}
	return nil
}

// Manifest describes the version of a list that is in force.
type Manifest struct {
	Version int       `json:"version"` // of this format
	Digest  Digest    `json:"digest"`  // of the text
	Size    int64     `json:"size"`    // of the text, in bytes
	Chunks  int       `json:"chunks"`
	Entries int       `json:"entries,omitempty"` // as the pusher has counted them
	Time    time.Time `json:"time"`              // of the push, by the pusher's clock
	Author  string    `json:"author,omitempty"`
	Message string    `json:"message,omitempty"`

	// Confirmed says that any number of entries may go: see core.Config.MaxRemoval.
	Confirmed bool `json:"confirmed,omitempty"`
}

// NewManifest returns the manifest of a text, without what only people read.
func NewManifest(digest Digest, size int64) Manifest {
	return Manifest{Version: manifestVersion, Digest: digest, Size: size, Chunks: chunks(size)}
}

// chunks returns how many chunks a text has.
func chunks(size int64) int { return int((size + ChunkSize - 1) / ChunkSize) }

// ParseManifest decodes a manifest. It returns an error if chunks could not be read by
// it.
func ParseManifest(value []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(value, &m); err != nil {
		return Manifest{}, fmt.Errorf("the manifest is damaged: push the list again: %w", err)
	}
	switch {
	case m.Version != manifestVersion:
		return Manifest{}, fmt.Errorf("the manifest has version %d, this program reads version %d: update it, or push the list again",
			m.Version, manifestVersion)
	case m.Size <= 0 || m.Size > MaxSize || m.Chunks != chunks(m.Size):
		return Manifest{}, fmt.Errorf("the manifest says %d bytes in %d chunks, which cannot be: push the list again", m.Size, m.Chunks)
	case m.Digest == Digest{}:
		return Manifest{}, errors.New("the manifest has no digest: push the list again")
	}
	return m, nil
}

// ChunkLength returns how many bytes of text are in a chunk.
func (m Manifest) ChunkLength(index int) int64 {
	return min(ChunkSize, m.Size-int64(index)*ChunkSize)
}

// Pack compresses the text of a chunk. Each chunk is compressed by itself, so that it
// does not matter which program has written which one.
func Pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := zipped.Write(text); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// Unpack decompresses a chunk whose text has so many bytes. It reads no more than
// that, whatever the chunk holds.
func Unpack(packed []byte, length int64) ([]byte, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(zipped, length+1))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if int64(len(text)) != length {
		return nil, fmt.Errorf("it does not have the %d bytes of the manifest", length)
	}
	return text, nil
}
