package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/internal/listformat"
	"github.com/penstock-go/penstock/list"
)

// ErrNoList is returned for a list that etcd does not have.
var ErrNoList = errors.New("store: there is no such list")

// ListInfo describes a list in etcd.
type ListInfo struct {
	Name    string    `json:"name"`
	Digest  string    `json:"digest"`  // SHA-256 of the text, in hexadecimal digits
	Size    int64     `json:"size"`    // of the text, in bytes
	Entries int       `json:"entries"` // as the pusher has counted them; 0 if it has not
	Time    time.Time `json:"time"`    // of the push, by the pusher's clock
	Author  string    `json:"author,omitempty"`
	Message string    `json:"message,omitempty"`

	// Revision is the revision of etcd that the push has created.
	Revision int64 `json:"revision"`

	// Err is set if the manifest of the list is damaged. All fields but the name and the
	// revision are then empty.
	Err error `json:"-"`
}

func listInfo(name string, m listformat.Manifest, revision int64) ListInfo {
	info := ListInfo{
		Name: name, Size: m.Size, Entries: m.Entries, Time: m.Time, Author: m.Author, Message: m.Message, Revision: revision,
	}
	if m.Digest != (listformat.Digest{}) {
		info.Digest = m.Digest.String()
	}
	return info
}

// Lists returns the lists in etcd, by name.
func (s *Store) Lists(ctx context.Context) ([]ListInfo, error) {
	prefix := listformat.ManifestKeys(s.keys.Lists)
	found, err := s.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("store: reading %s: %w", prefix, err)
	}
	all := make([]ListInfo, 0, len(found.Kvs))
	for _, pair := range found.Kvs {
		name := strings.TrimPrefix(string(pair.Key), prefix)
		if name == "" {
			continue // the confirmation, see Store.ConfirmLists
		}
		manifest, err := listformat.ParseManifest(pair.Value)
		info := listInfo(name, manifest, pair.ModRevision)
		if err != nil {
			info.Err = fmt.Errorf("store: key %s: %w", pair.Key, err)
		}
		all = append(all, info)
	}
	return all, nil
}

// Versions returns the versions of lists, as instances report them: see [etcd.Report.HasLists].
func Versions(lists []ListInfo) []etcd.ListVersion {
	versions := make([]etcd.ListVersion, len(lists))
	for i, l := range lists {
		versions[i] = etcd.ListVersion{Name: l.Name, Digest: l.Digest}
	}
	return versions
}

// List returns one list in etcd, or [ErrNoList].
func (s *Store) List(ctx context.Context, name string) (ListInfo, error) {
	now, err := s.readManifest(ctx, name)
	switch {
	case err != nil:
		return ListInfo{}, err
	case now.revision == 0:
		return ListInfo{}, fmt.Errorf("%w: %q", ErrNoList, name)
	case now.err != nil:
		return ListInfo{Name: name, Revision: now.revision, Err: now.err}, nil
	default:
		return listInfo(name, now.Manifest, now.revision), nil
	}
}

// PullList writes the text of a list, as it was pushed, and returns what it is: of the
// present version, or of a former one with a revision that [Store.ListHistory] has. It
// returns [ErrNoList] if etcd does not have it, or [ErrNoRevision]. After any other error the
// text is not complete.
func (s *Store) PullList(
	ctx context.Context, name string, revision int64, to io.Writer, progress func(done, size int64),
) (ListInfo, error) {
	if err := list.CheckName(name); err != nil {
		return ListInfo{}, fmt.Errorf("store: %w", err)
	}
	if revision != 0 {
		_, former, err := s.formerVersion(ctx, name, revision)
		if err == nil {
			_, err = s.copyVersion(ctx, name, former, to, progress)
		}
		return listInfo(name, former, revision), err
	}
	text, err := listformat.Open(ctx, s.readRange, s.keys.Lists, name)
	if errors.Is(err, listformat.ErrNoList) {
		return ListInfo{}, fmt.Errorf("%w: %q", ErrNoList, name)
	}
	if err != nil {
		return ListInfo{}, fmt.Errorf("store: list %q: %w", name, err)
	}
	copied := newDigester(text, text.Manifest.Size, progress)
	if _, err := io.Copy(to, copied); err != nil {
		return ListInfo{}, fmt.Errorf("store: list %q: %w", name, err)
	}
	if found := copied.digest(); found != text.Manifest.Digest {
		return ListInfo{}, fmt.Errorf("store: list %q is damaged: its text has the SHA-256 %v, not %v: push it again",
			name, found, text.Manifest.Digest)
	}
	return listInfo(name, text.Manifest, text.Written), nil
}

// DeleteList deletes a list but for its history, see [Store.ListHistory], as long as its revision
// is the expected one, unless that is 0. It returns what was deleted, [ErrNoList], or a
// [*ListConflictError]. Instances remove the list at once, unless they hold that back until
// [Store.ConfirmLists]: see core.Config.MaxRemoval.
func (s *Store) DeleteList(ctx context.Context, name string, expect int64) (ListInfo, error) {
	if err := list.CheckName(name); err != nil {
		return ListInfo{}, fmt.Errorf("store: %w", err)
	}
	now, err := s.readManifest(ctx, name)
	switch {
	case err != nil:
		return ListInfo{}, err
	case now.revision == 0:
		return ListInfo{}, fmt.Errorf("%w: %q", ErrNoList, name)
	case expect != 0 && expect != now.revision:
		return ListInfo{}, &ListConflictError{Name: name, Expect: expect, Revision: now.revision}
	}
	before, err := s.readListHistory(ctx, name)
	if err != nil {
		return ListInfo{}, err
	}
	ops, err := before.with(now, listformat.Digest{}).write(s.keys.Lists, name, listformat.Digest{})
	if err != nil {
		return ListInfo{}, err
	}
	key := s.manifestKey(name)
	done, err := s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(key), "=", now.revision), before.unchanged(s.keys.Lists, name),
	).Then(append([]clientv3.Op{clientv3.OpDelete(key)}, ops...)...).Commit()
	switch {
	case err != nil:
		return ListInfo{}, fmt.Errorf("store: whether list %q was deleted is not known: %w", name, err)
	case !done.Succeeded:
		return ListInfo{}, &ListConflictError{Name: name, Expect: now.revision}
	}
	return listInfo(name, now.Manifest, now.revision), nil
}

// ListConflictError says that a list was not written because somebody else has written
// it meanwhile. It matches [ErrConflict] with errors.Is.
type ListConflictError struct {
	Name     string
	Expect   int64 // the revision that was expected; 0: that there was no such list
	Revision int64 // the present one; 0 if it is not known
}

// Error implements error.
func (e *ListConflictError) Error() string {
	return fmt.Sprintf("store: somebody has written or deleted list %q since revision %d: look at it and try again", e.Name, e.Expect)
}

// Is reports whether the target is [ErrConflict].
func (e *ListConflictError) Is(target error) bool { return target == ErrConflict }

// manifest is the manifest of a list as it is in etcd.
type manifest struct {
	listformat.Manifest
	revision int64 // that wrote it; 0 if there is none
	err      error // why it cannot be read
}

func (s *Store) readManifest(ctx context.Context, name string) (manifest, error) {
	key := s.manifestKey(name)
	found, err := s.client.Get(ctx, key)
	if err != nil {
		return manifest{}, fmt.Errorf("store: reading %s: %w", key, err)
	}
	if len(found.Kvs) == 0 {
		return manifest{}, nil
	}
	now := manifest{revision: found.Kvs[0].ModRevision}
	if now.Manifest, now.err = listformat.ParseManifest(found.Kvs[0].Value); now.err != nil {
		now.err = fmt.Errorf("store: key %s: %w", key, now.err)
	}
	return now, nil
}

func (s *Store) manifestKey(name string) string { return listformat.ManifestKeys(s.keys.Lists) + name }

// readRange makes one request.
func (s *Store) readRange(ctx context.Context, request *pb.RangeRequest) (*pb.RangeResponse, error) {
	opts := []clientv3.OpOption{clientv3.WithRev(request.Revision)}
	if request.RangeEnd != nil {
		opts = append(opts, clientv3.WithRange(string(request.RangeEnd)))
	}
	if request.CountOnly {
		opts = append(opts, clientv3.WithCountOnly())
	}
	found, err := s.client.Get(ctx, string(request.Key), opts...)
	return (*pb.RangeResponse)(found), err
}

// encode encodes a manifest.
func encode(m listformat.Manifest) (string, error) {
	value, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("store: writing a manifest: %w", err)
	}
	return string(value), nil
}
