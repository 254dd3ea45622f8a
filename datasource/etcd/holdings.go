package etcd

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// DocumentRevision names one version of a document.
type DocumentRevision struct {
	Name     string `json:"name"`
	Revision int64  `json:"revision"` // the modification revision of the key
}

// DigestOf returns a SHA-256 of the names and revisions of documents, in hexadecimal
// digits. Their order does not matter. A name that instances do not read, as it is too long,
// counts as they report it.
func DigestOf(documents []DocumentRevision) string {
	documents = slices.Clone(documents)
	for i := range documents {
		documents[i].Name = shortName(documents[i].Name)
	}
	sorted := slices.SortedFunc(slices.Values(documents), func(a, b DocumentRevision) int { return cmp.Compare(a.Name, b.Name) })
	hash := sha256.New()
	for _, d := range sorted {
		_ = binary.Write(hash, binary.BigEndian, [2]int64{int64(len(d.Name)), d.Revision}) // never fails
		_, _ = io.WriteString(hash, d.Name)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// heldBy returns the documents that an instance has read, by name: the versions in force,
// or those that it read last and did not put in force. A removal that is held back counts
// as read.
func heldBy(status core.SourceStatus) (held []DocumentRevision) {
	for _, d := range status.Documents {
		revision := d.Revision
		if d.Rejected != nil {
			revision = d.RejectedRevision
		}
		if revision != 0 {
			held = append(held, DocumentRevision{d.Name, revision})
		}
	}
	return held
}
