package etcd

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"slices"

	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// ListVersion names one version of a list.
type ListVersion struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // the SHA-256 of its text, in hexadecimal digits; "" if no version of it is good
}

// ListsDigestOf returns a SHA-256 of the names and digests of lists, in hexadecimal digits. Their order
// does not matter.
func ListsDigestOf(versions []ListVersion) string {
	sorted := slices.SortedFunc(slices.Values(versions), func(a, b ListVersion) int { return cmp.Compare(a.Name, b.Name) })
	hash := sha256.New()
	for _, l := range sorted {
		_ = binary.Write(hash, binary.BigEndian, [2]int64{int64(len(l.Name)), int64(len(l.Digest))}) // never fails
		_, _ = io.WriteString(hash, l.Name+l.Digest)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// HasLists reports whether the instance has exactly these lists in force: those in etcd, as
// store.Versions returns them. It is true of one that does not watch lists, or does not tell.
func (r Report) HasLists(stored []ListVersion) bool {
	return r.ListsDigest == "" || r.ListsDigest == ListsDigestOf(stored)
}

// withLists returns the report with the fields that depend on the lists of the source.
func (r Report) withLists(registry *list.Registry, source string) Report {
	if registry == nil {
		return r
	}
	var all []ListVersion
	for _, l := range registry.Status() {
		if l.Source != source {
			continue
		}
		if l.HeldBack != nil && len(r.ListsHeldBack) < maxRejections {
			r.ListsHeldBack = append(r.ListsHeldBack, l.Name)
		}
		if l.CopiedAt != 0 && len(r.ListsOnCopy) < maxRejections {
			r.ListsOnCopy = append(r.ListsOnCopy, l.Name)
		}
		version := ListVersion{Name: l.Name}
		if l.Digest != (lists.Digest{}) {
			version.Digest = hex.EncodeToString(l.Digest[:])
		}
		all = append(all, version)
	}
	slices.SortFunc(all, func(a, b ListVersion) int { return cmp.Compare(a.Name, b.Name) })
	r.ListsDigest = ListsDigestOf(all)
	r.Lists = shown(all, func(l ListVersion) string { return l.Name })
	return r
}
