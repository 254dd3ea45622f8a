package listformat

import (
	"context"
	"errors"
	"fmt"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNoList is returned for a list that is not in etcd.
var ErrNoList = errors.New("there is no such list")

// Range makes one request to etcd.
type Range func(ctx context.Context, request *pb.RangeRequest) (*pb.RangeResponse, error)

// Text is the text of a list as it was at one revision. Reading it does not check its
// digest.
type Text struct {
	Manifest Manifest
	Written  int64 // revision of etcd that wrote the manifest

	ctx      context.Context //nolint:containedctx // it lives as long as one call of the reader
	read     Range
	prefix   func(index int) string // returns the key of a chunk
	revision int64                  // at which all chunks are read
	next     int                    // index of the next chunk
	rest     []byte                 // of the present chunk
}

// Open reads the manifest of a list, and returns its text at the revision of that read.
// It returns an error if not all chunks are there.
func Open(ctx context.Context, read Range, lists, name string) (*Text, error) {
	key := ManifestKeys(lists) + name
	found, err := read(ctx, &pb.RangeRequest{Key: []byte(key)})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", key, err)
	case len(found.Kvs) == 0:
		return nil, fmt.Errorf("%w: etcd has no key %s", ErrNoList, key)
	}
	manifest, err := ParseManifest(found.Kvs[0].Value)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", key, err)
	}
	t, err := OpenVersion(ctx, read, lists, name, manifest, found.Header.Revision)
	if err != nil {
		return nil, err
	}
	t.Written = found.Kvs[0].ModRevision
	return t, nil
}

// OpenVersion returns the text of a version as it is at a revision. It returns an error if
// not all chunks are there.
func OpenVersion(ctx context.Context, read Range, lists, name string, manifest Manifest, revision int64) (*Text, error) {
	t := &Text{
		Manifest: manifest, ctx: ctx, read: read, revision: revision,
		prefix: func(index int) string { return ChunkKey(lists, name, manifest.Digest, index) },
	}
	keys := VersionKeys(lists, name, manifest.Digest)
	count, err := read(ctx, &pb.RangeRequest{
		Key: []byte(keys), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(keys)), Revision: t.revision, CountOnly: true,
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("counting the chunks below %s: %w", keys, err)
	case count.Count < int64(manifest.Chunks):
		return nil, fmt.Errorf("only %d of the %d chunks below %s are there: push the list again", count.Count, manifest.Chunks, keys)
	}
	return t, nil
}

// Read implements [io.Reader].
func (t *Text) Read(p []byte) (int, error) {
	if len(t.rest) == 0 {
		if t.next == t.Manifest.Chunks {
			return 0, io.EOF
		}
		if err := t.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// fetch reads the next chunk.
func (t *Text) fetch() error {
	key := t.prefix(t.next)
	found, err := t.read(t.ctx, &pb.RangeRequest{Key: []byte(key), Revision: t.revision})
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", key, err)
	case len(found.Kvs) == 0:
		return fmt.Errorf("chunk %s is missing: push the list again", key)
	}
	text, err := Unpack(found.Kvs[0].Value, t.Manifest.ChunkLength(t.next))
	if err != nil {
		return fmt.Errorf("chunk %s: %w: push the list again", key, err)
	}
	t.rest = text
	t.next++
	return nil
}

// Close implements [io.Closer].
func (t *Text) Close() error { return nil }
