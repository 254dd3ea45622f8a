package httpsource

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"unicode"
)

// maxIndexSize is how many bytes an index may have.
const maxIndexSize = 8 << 20

// entry is a document in an index.
type entry struct {
	name   string
	digest []byte // its SHA-256; nil if the index does not have it
}

// index is an index that was read.
type index struct {
	version version
	from    *url.URL // names are relative to it
	entries []entry
}

// readIndex reads the index, unless it has not changed.
func (f *follower) readIndex(ctx context.Context) error {
	var before *version
	if f.index != nil {
		before = &f.index.version
	}
	a, err := f.get(ctx, f.url, before, maxIndexSize)
	if err != nil {
		return err
	}
	if a.unchanged {
		f.index.version, f.index.from = a.version, a.from
		return nil
	}
	entries, err := parseIndex(a.data)
	if err == nil && len(entries) > f.opts.MaxDocuments {
		err = fmt.Errorf("%d documents are more than Options.MaxDocuments allows, which is %d: none was applied",
			len(entries), f.opts.MaxDocuments)
	}
	if err != nil {
		return fmt.Errorf("httpsource: the index %s: %w", display(f.url), err)
	}
	f.index = &index{version: a.version, from: a.from, entries: entries}
	return nil
}

// parseIndex parses an index.
func parseIndex(data []byte) ([]entry, error) {
	var given struct {
		Documents *[]struct {
			Name   string `json:"name"`
			SHA256 string `json:"sha256"`
		} `json:"documents"`
	}
	if err := json.Unmarshal(data, &given); err != nil {
		return nil, fmt.Errorf(`it is not JSON like {"documents": [{"name": "orders.yaml"}]}: %w`, err)
	}
	if given.Documents == nil {
		return nil, errors.New(`it has no list "documents": one without documents says {"documents": []}`)
	}
	var faults []error
	seen := make(map[string]bool, len(*given.Documents))
	entries := make([]entry, 0, len(*given.Documents))
	for i, d := range *given.Documents {
		digest, err := parseDigest(d.SHA256)
		if err == nil {
			err = checkName(d.Name)
		}
		if err == nil && seen[d.Name] {
			err = errors.New("it is in the index twice")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("document %d, %q: %w", i, d.Name, err))
			continue
		}
		seen[d.Name] = true
		entries = append(entries, entry{name: d.Name, digest: digest})
	}
	return entries, errors.Join(faults...)
}

func parseDigest(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	digest, err := hex.DecodeString(text)
	if err != nil || len(digest) != len(version{}.digest) {
		return nil, errors.New("its sha256 is not one, in hexadecimal digits")
	}
	return digest, nil
}

func checkName(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, unicode.IsControl) {
		return errors.New(`names are paths below that of the index, such as "orders.yaml" or "shop/orders.yaml"`)
	}
	return nil
}

// locate returns the URL of a document of the index that was read at a URL.
func locate(from *url.URL, name string) *url.URL {
	at := from.ResolveReference(&url.URL{Path: name})
	at.RawQuery = ""
	return at
}
