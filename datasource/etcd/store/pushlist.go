package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/datasource/etcd/internal/listformat"
	"github.com/penstock-go/penstock/list"
)

const cleanupTimeout = 10 * time.Second

// ListPush is a list to be written.
type ListPush struct {
	Name string // see [list.CheckName]

	// Text is the text of the list, of at most [list.MaxSize] bytes. It is read twice,
	// from its start. The store does not parse it: a text with mistakes replaces the list
	// in etcd, but not the one in force in instances.
	Text io.ReadSeeker

	// Entries is how many entries the text has, for those who look. Defaults to unknown.
	Entries int

	// Expect is the revision of the list that is to be replaced. If somebody has written
	// it since, nothing is changed. Defaults to the revision at the start of the push.
	Expect int64

	// ConfirmRemoval lets instances put the list in force however many entries it takes out,
	// where they would hold it back: see core.Config.MaxRemoval.
	ConfirmRemoval bool

	// Author and Message are kept with the list.
	Author  string
	Message string

	// Progress, when set, is called by the goroutine that pushes with how many bytes of
	// the text have been written.
	Progress func(done, size int64)
}

// PushList replaces a list and returns what it is now. It writes the text in chunks
// first, which nobody reads yet. Then one transaction makes them the list and deletes those
// of versions that [Store.ListHistory] has no longer. So instances read either the present list or the new one, whole, whatever ends
// the push when, and of concurrent pushes all but one fail with a [*ListConflictError].
// What a push leaves that was killed is deleted by the next one.
//
// A push of the text that the list has writes nothing, unless chunks of it are missing or
// damaged.
func (s *Store) PushList(ctx context.Context, push ListPush) (ListInfo, error) {
	if err := list.CheckName(push.Name); err != nil {
		return ListInfo{}, fmt.Errorf("store: %w", err)
	}
	next, err := s.nextManifest(ctx, push)
	if err != nil {
		return ListInfo{}, err
	}
	now, err := s.readManifest(ctx, push.Name)
	switch {
	case err != nil:
		return ListInfo{}, err
	case push.Expect != 0 && push.Expect != now.revision:
		return ListInfo{}, &ListConflictError{Name: push.Name, Expect: push.Expect, Revision: now.revision}
	}
	same := now.revision != 0 && now.err == nil && now.Digest == next.Digest
	if same && (now.Confirmed || !push.ConfirmRemoval) {
		if _, err := s.PullList(ctx, push.Name, 0, io.Discard, nil); err == nil {
			return listInfo(push.Name, now.Manifest, now.revision), nil
		}
	}
	before, err := s.readListHistory(ctx, push.Name)
	if err != nil {
		return ListInfo{}, err
	}
	u := upload{
		Store: s, push: push, manifest: next, replaces: now.revision, before: before, after: before.with(now, next.Digest),
	}
	written, err := u.run(ctx)
	if err != nil {
		if !same && !before.has(next.Digest) { // else its chunks are those of the list, or of a former version
			u.cleanUp(ctx)
		}
		return ListInfo{}, err
	}
	return listInfo(push.Name, next, written), nil
}

// nextManifest reads the text and returns its manifest.
func (s *Store) nextManifest(ctx context.Context, push ListPush) (listformat.Manifest, error) {
	text, err := rewind(ctx, push.Text)
	if err != nil {
		return listformat.Manifest{}, err
	}
	read := newDigester(text, 0, nil)
	size, err := io.Copy(io.Discard, io.LimitReader(read, listformat.MaxSize+1))
	switch {
	case err != nil:
		return listformat.Manifest{}, fmt.Errorf("store: reading the text of list %q: %w", push.Name, err)
	case size == 0:
		return listformat.Manifest{}, fmt.Errorf("store: the text of list %q is empty: a list without entries has a comment", push.Name)
	case size > listformat.MaxSize:
		return listformat.Manifest{}, fmt.Errorf("store: the text of list %q has more than %d bytes: split the list",
			push.Name, int64(listformat.MaxSize))
	}
	m := listformat.NewManifest(read.digest(), size)
	m.Entries, m.Author, m.Message, m.Time = push.Entries, push.Author, push.Message, s.now()
	m.Confirmed = push.ConfirmRemoval
	return m, nil
}

// upload is the part of a push that writes.
type upload struct {
	*Store
	push     ListPush
	manifest listformat.Manifest
	replaces int64 // revision of the manifest that is replaced; 0 without one

	before, after listHistory

	// first is the revision at which the first chunk was written, before all others. As
	// chunks of a version are deleted together, all are there while it is.
	first int64
}

// run writes the chunks and then the manifest. It returns the revision of that.
func (u *upload) run(ctx context.Context) (revision int64, err error) {
	if err := u.writeChunks(ctx); err != nil {
		return 0, err
	}
	return u.commit(ctx)
}

// commit makes chunks that are written the list. It returns the revision of that.
func (u *upload) commit(ctx context.Context) (revision int64, err error) {
	value, err := encode(u.manifest)
	if err != nil {
		return 0, err
	}
	history, err := u.after.write(u.keys.Lists, u.push.Name, u.manifest.Digest)
	if err != nil {
		return 0, err
	}
	conditions := append(u.conditions(), u.before.unchanged(u.keys.Lists, u.push.Name))
	ops := append([]clientv3.Op{clientv3.OpPut(u.manifestKey(u.push.Name), value)}, history...)
	done, err := u.client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	switch {
	case err != nil:
		u.first = 0 // nothing may be cleaned up
		return 0, fmt.Errorf("store: whether list %q was pushed is not known: look at it: %w", u.push.Name, err)
	case !done.Succeeded:
		return 0, &ListConflictError{Name: u.push.Name, Expect: u.replaces}
	}
	return done.Header.Revision, nil
}

// conditions are those under which the push may go on: nobody has written the manifest,
// and nobody has deleted or rewritten the chunks written so far.
func (u *upload) conditions() []clientv3.Cmp {
	unchanged := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(u.manifestKey(u.push.Name)), "=", u.replaces)}
	if u.first != 0 {
		first := listformat.ChunkKey(u.keys.Lists, u.push.Name, u.manifest.Digest, 0)
		unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(first), "=", u.first))
	}
	return unchanged
}

// writeChunks writes the chunks, one after the other.
func (u *upload) writeChunks(ctx context.Context) error {
	text, err := rewind(ctx, u.push.Text)
	if err != nil {
		return err
	}
	read := newDigester(text, u.manifest.Size, nil)
	buffer := make([]byte, listformat.ChunkSize)
	for i, done := 0, int64(0); i < u.manifest.Chunks; i++ {
		chunk := buffer[:u.manifest.ChunkLength(i)]
		if _, err := io.ReadFull(read, chunk); err != nil {
			return fmt.Errorf("store: reading the text of list %q again: %w: was it changed meanwhile?", u.push.Name, err)
		}
		if err := u.writeChunk(ctx, i, chunk); err != nil {
			return err
		}
		done += int64(len(chunk))
		if u.push.Progress != nil {
			u.push.Progress(done, u.manifest.Size)
		}
	}
	if read.digest() != u.manifest.Digest {
		return fmt.Errorf("store: the text of list %q was changed while it was pushed: nothing has changed, push it again", u.push.Name)
	}
	return nil
}

func (u *upload) writeChunk(ctx context.Context, index int, text []byte) error {
	packed, err := listformat.Pack(text)
	if err != nil {
		return fmt.Errorf("store: compressing list %q: %w", u.push.Name, err)
	}
	key := listformat.ChunkKey(u.keys.Lists, u.push.Name, u.manifest.Digest, index)
	done, err := u.client.Txn(ctx).If(u.conditions()...).Then(clientv3.OpPut(key, string(packed))).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("store: list %q was not pushed, the present one stays: writing %s: %w", u.push.Name, key, err)
	case !done.Succeeded:
		return &ListConflictError{Name: u.push.Name, Expect: u.replaces}
	case index == 0:
		u.first = done.Header.Revision
	}
	return nil
}

// cleanUp deletes the chunks of a push that has failed, unless somebody else has written
// meanwhile. What it cannot delete, the next push does.
func (u *upload) cleanUp(ctx context.Context) {
	if u.first == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	version := listformat.VersionKeys(u.keys.Lists, u.push.Name, u.manifest.Digest)
	_, _ = u.client.Txn(ctx).If(u.conditions()...).Then(clientv3.OpDelete(version, clientv3.WithPrefix())).Commit()
}

// rewind returns a reader of the text from its start that ends with ctx.
func rewind(ctx context.Context, text io.ReadSeeker) (io.Reader, error) {
	if text == nil {
		return nil, errors.New("store: ListPush.Text is nil: give the text of the list")
	}
	if _, err := text.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("store: reading the text of the list from its start: %w", err)
	}
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return text.Read(p)
	}), nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// digester computes the digest of what is read.
type digester struct {
	from     io.Reader
	sum      hash.Hash
	done     int64
	size     int64
	progress func(done, size int64) // may be nil
}

func newDigester(from io.Reader, size int64, progress func(done, size int64)) *digester {
	return &digester{from: from, sum: sha256.New(), size: size, progress: progress}
}

// Read implements [io.Reader].
func (d *digester) Read(p []byte) (int, error) {
	n, err := d.from.Read(p)
	d.sum.Write(p[:n])
	d.done += int64(n)
	if d.progress != nil && n > 0 {
		d.progress(d.done, d.size)
	}
	return n, err
}

func (d *digester) digest() (digest listformat.Digest) {
	d.sum.Sum(digest[:0])
	return digest
}
