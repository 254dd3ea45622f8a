package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/datasource/etcd/internal/listformat"
	"github.com/penstock-go/penstock/list"
)

// What is kept of the former versions of a list.
const (
	maxFormer     = 5         // versions
	maxFormerSize = 128 << 20 // bytes of text of all of them; the last one is kept whatever it has
)

// formerVersion is a version of a list that another one has replaced.
type formerVersion struct {
	listformat.Manifest

	Revision int64 `json:"revision"` // that wrote it
}

// listHistory is the former versions of a list, the newest first.
type listHistory struct {
	Versions []formerVersion `json:"versions"`

	revision int64 // of etcd that wrote it; 0 if there is none
}

func (s *Store) readListHistory(ctx context.Context, name string) (h listHistory, err error) {
	key := listformat.HistoryKey(s.keys.Lists, name)
	found, err := s.client.Get(ctx, key)
	if err != nil {
		return h, fmt.Errorf("store: reading %s: %w", key, err)
	}
	if len(found.Kvs) == 0 {
		return h, nil
	}
	h.revision = found.Kvs[0].ModRevision
	if err := json.Unmarshal(found.Kvs[0].Value, &h); err != nil {
		h.Versions = nil // it is written anew
	}
	return h, nil
}

// with returns the history after a version of a digest, zero for none, has taken the place of the
// present one.
func (h listHistory) with(now manifest, next listformat.Digest) listHistory {
	versions := slices.Clone(h.Versions)
	if now.revision != 0 && now.err == nil {
		versions = slices.Insert(versions, 0, formerVersion{now.Manifest, now.revision})
	}
	kept, size := listHistory{revision: h.revision}, int64(0)
	for _, v := range versions {
		isKept := slices.ContainsFunc(kept.Versions, func(k formerVersion) bool { return k.Digest == v.Digest })
		if v.Digest == next || isKept {
			continue
		}
		if size += v.Size; len(kept.Versions) == maxFormer || len(kept.Versions) > 0 && size > maxFormerSize {
			break
		}
		kept.Versions = append(kept.Versions, v)
	}
	return kept
}

// has says whether the chunks of a digest are those of a former version.
func (h listHistory) has(digest listformat.Digest) bool {
	return slices.ContainsFunc(h.Versions, func(v formerVersion) bool { return v.Digest == digest })
}

// write returns what writes the history of a list and deletes the chunks of all versions
// that neither it nor the list has, whose digest is zero if it is deleted.
func (h listHistory) write(lists, name string, present listformat.Digest) ([]clientv3.Op, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("store: writing the history of a list: %w", err)
	}
	var digests []listformat.Digest
	if present != (listformat.Digest{}) {
		digests = append(digests, present)
	}
	for _, v := range h.Versions {
		digests = append(digests, v.Digest)
	}
	slices.SortFunc(digests, func(a, b listformat.Digest) int { return bytes.Compare(a[:], b[:]) })
	key := listformat.HistoryKey(lists, name)
	ops := []clientv3.Op{clientv3.OpPut(key, string(value))}
	if len(h.Versions) == 0 {
		ops[0] = clientv3.OpDelete(key)
	}
	chunks := listformat.ChunkKeys(lists, name)
	from := chunks
	for _, digest := range digests {
		version := listformat.VersionKeys(lists, name, digest)
		ops = append(ops, clientv3.OpDelete(from, clientv3.WithRange(version)))
		from = clientv3.GetPrefixRangeEnd(version)
	}
	return append(ops, clientv3.OpDelete(from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(chunks)))), nil
}

// unchanged is the condition that nobody has written the history meanwhile.
func (h listHistory) unchanged(lists, name string) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(listformat.HistoryKey(lists, name)), "=", h.revision)
}

// ListHistory returns the former versions of a list, the newest first: at most five, and
// of long ones only as many as have 128 MiB together, but at least one. A list that is deleted still has
// them.
func (s *Store) ListHistory(ctx context.Context, name string) ([]ListInfo, error) {
	if err := list.CheckName(name); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	h, err := s.readListHistory(ctx, name)
	if err != nil {
		return nil, err
	}
	all := make([]ListInfo, len(h.Versions))
	for i, v := range h.Versions {
		all[i] = listInfo(name, v.Manifest, v.Revision)
	}
	return all, nil
}

// ListRollback says which version of a list is to be restored.
type ListRollback struct {
	Name     string
	Revision int64 // of the version, as [Store.ListHistory] has it

	// Expect is the revision of the list that is to be replaced, 0 if it was deleted. If
	// somebody has written it since, nothing is changed.
	Expect int64

	// ConfirmRemoval, Author and Message are as in [ListPush].
	ConfirmRemoval  bool
	Author, Message string

	// Progress, when set, is called by the goroutine that restores with how many bytes of the
	// text have been checked.
	Progress func(done, size int64)
}

// RollBackList makes a former version of a list the present one, as a new revision, and
// returns what it is now. It reads the version and checks it first. It returns
// [ErrNoRevision] if the history does not have it, or a [*ListConflictError].
func (s *Store) RollBackList(ctx context.Context, r ListRollback) (ListInfo, error) {
	if err := list.CheckName(r.Name); err != nil {
		return ListInfo{}, fmt.Errorf("store: %w", err)
	}
	now, err := s.readManifest(ctx, r.Name)
	if err != nil {
		return ListInfo{}, err
	}
	if now.revision != r.Expect {
		return ListInfo{}, &ListConflictError{Name: r.Name, Expect: r.Expect, Revision: now.revision}
	}
	h, next, err := s.formerVersion(ctx, r.Name, r.Revision)
	if err != nil {
		return ListInfo{}, err
	}
	whole, err := s.copyVersion(ctx, r.Name, next, io.Discard, r.Progress)
	if err != nil {
		return ListInfo{}, err
	}
	next.Author, next.Message, next.Time, next.Confirmed = r.Author, r.Message, s.now(), r.ConfirmRemoval
	u := upload{
		Store: s, push: ListPush{Name: r.Name}, manifest: next, replaces: now.revision, first: whole,
		before: h, after: h.with(now, next.Digest),
	}
	written, err := u.commit(ctx)
	if err != nil {
		return ListInfo{}, err
	}
	return listInfo(r.Name, next, written), nil
}

// formerVersion returns a former version of a list, and the history that it is in.
func (s *Store) formerVersion(ctx context.Context, name string, revision int64) (h listHistory, m listformat.Manifest, err error) {
	if h, err = s.readListHistory(ctx, name); err != nil {
		return h, m, err
	}
	at := slices.IndexFunc(h.Versions, func(v formerVersion) bool { return v.Revision == revision })
	if at < 0 {
		return h, m, fmt.Errorf("%w: list %q, revision %d", ErrNoRevision, name, revision)
	}
	return h, h.Versions[at].Manifest, nil
}

// copyVersion writes the text of a version, checks it, and returns the revision that wrote its first chunk.
func (s *Store) copyVersion(
	ctx context.Context, name string, m listformat.Manifest, to io.Writer, progress func(done, size int64),
) (first int64, err error) {
	key := listformat.ChunkKey(s.keys.Lists, name, m.Digest, 0)
	found, err := s.client.Get(ctx, key, clientv3.WithKeysOnly())
	switch {
	case err != nil:
		return 0, fmt.Errorf("store: reading %s: %w", key, err)
	case len(found.Kvs) == 0:
		return 0, fmt.Errorf("store: the text of that version of list %q is gone: an older program has pushed it since", name)
	}
	text, err := listformat.OpenVersion(ctx, s.readRange, s.keys.Lists, name, m, found.Header.Revision)
	if err == nil {
		read := newDigester(text, m.Size, progress)
		_, err = io.Copy(to, read)
		if err == nil && read.digest() != m.Digest {
			err = errors.New("it does not have its SHA-256")
		}
	}
	if err != nil {
		return 0, fmt.Errorf("store: that version of list %q cannot be restored: %w", name, err)
	}
	return found.Kvs[0].ModRevision, nil
}
