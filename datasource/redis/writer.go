package redissource

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// historyField is the field of the hash that tells its history. No document has an empty
// name.
const historyField = ""

// history tells the version of the documents, if a [Writer] wrote them.
type history struct {
	id       string // random, given when the hash was made
	revision int64  // of the last write
}

// parseHistory returns the zero history if there is none.
func parseHistory(text string) history {
	id, number, ok := strings.Cut(text, " ")
	revision, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || id == "" || revision < 1 {
		return history{}
	}
	return history{id, revision}
}

// older reports whether h is an earlier state of the documents of before.
func (h history) older(before history) bool {
	return h.id != "" && h.id == before.id && h.revision < before.revision
}

// writeScript changes fields of the hash and counts the revision. The arguments are an ID
// for a new history, the number of documents to put, their names and texts, and the names
// of documents to delete.
const writeScript = `
local id, revision = string.match(redis.call('HGET', KEYS[1], '') or '', '^(%S+) (%d+)$')
if not id then id, revision = ARGV[1], 0 end
local put = 2 + 2 * tonumber(ARGV[2])
for i = 3, put, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
for i = put + 1, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
revision = tonumber(revision) + 1
redis.call('HSET', KEYS[1], '', string.format('%s %d', id, revision))
return revision
`

// Writer writes documents for sources. All that one call writes takes effect at once, and
// sources can tell whether a server has lost it. It may be used concurrently, beside other
// writers.
type Writer struct {
	client rueidis.Client
	key    string
	script *rueidis.Lua
}

// NewWriter returns a writer of the documents at the key, such as [Key] returns. The
// caller closes the client. The client's user needs the permissions +evalsha +eval +hget
// +hset +hdel.
func NewWriter(client rueidis.Client, key string) (*Writer, error) {
	var clientErr error
	if client == nil {
		clientErr = errors.New("redis: the client is nil: make it with rueidis.NewClient")
	}
	if err := errors.Join(clientErr, checkKey(key)); err != nil {
		return nil, err
	}
	return &Writer{client: client, key: key, script: rueidis.NewLuaScript(writeScript)}, nil
}

// Edit is a change of several documents.
type Edit struct {
	Put    map[string][]byte // documents by name
	Delete []string          // names; those that are not there are ignored
}

// Put writes one document and returns the revision. It does not check the rules:
// "penstock validate" does.
func (w *Writer) Put(ctx context.Context, name string, data []byte) (revision int64, err error) {
	return w.Apply(ctx, Edit{Put: map[string][]byte{name: data}})
}

// Delete removes documents and returns the revision.
func (w *Writer) Delete(ctx context.Context, names ...string) (revision int64, err error) {
	return w.Apply(ctx, Edit{Delete: names})
}

// Apply makes a change of several documents at once and returns the revision. After an
// error the change was made whole or not at all; it may be made again.
func (w *Writer) Apply(ctx context.Context, edit Edit) (revision int64, err error) {
	if err := edit.check(); err != nil {
		return 0, err
	}
	args := []string{rand.Text(), strconv.Itoa(len(edit.Put))}
	for _, name := range slices.Sorted(maps.Keys(edit.Put)) {
		args = append(args, name, string(edit.Put[name]))
	}
	args = append(args, edit.Delete...)
	revision, err = w.script.Exec(ctx, w.client, []string{w.key}, args).AsInt64()
	if err != nil {
		return 0, explain(fmt.Errorf("writing %s: %w", w.key, err))
	}
	return revision, nil
}

// check returns all mistakes.
func (e Edit) check() error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(e.Put)) {
		if name == "" {
			faults = append(faults, errors.New("redis: a document needs a name"))
		}
		if size := len(e.Put[name]); size > MaxDocumentSize {
			faults = append(faults, fmt.Errorf("redis: document %q has %d bytes, at most %d are read: split the document",
				name, size, MaxDocumentSize))
		}
		if slices.Contains(e.Delete, name) {
			faults = append(faults, fmt.Errorf("redis: document %q is both put and deleted", name))
		}
	}
	if slices.Contains(e.Delete, "") {
		faults = append(faults, errors.New("redis: a document to delete has no name"))
	}
	return errors.Join(faults...)
}
