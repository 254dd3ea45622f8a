package etcd

import (
	"context"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/internal/listformat"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/datasource/retry"
	"github.com/penstock-go/penstock/list"
)

// maxListRetry limits the pause before a list is read again, as a multiple of
// [Options.MaxBackoff]: a damaged list of every instance costs a lot to read. After a lost
// connection there is no pause.
const maxListRetry = 120

// WatchLists keeps the lists of the application, below [Keys].Lists, in the registry,
// which is that of an engine (Engine.Lists), until ctx ends or the watch is closed. It
// uses a connection of its own if the source was made by [Open], else the caller's
// client, and the options of the source without Instance.
//
//	source, err := etcd.Open(config, etcd.Prefix("shop"), etcd.Options{})
//	…
//	lists, err := source.WatchLists(ctx, engine.Lists())
//
// What is watched are the manifests of the lists, in the way in which documents are:
// see the package comment. A manifest names the SHA-256 of the text and the number of its
// chunks. When it changes, the manifest and its chunks are read at one revision, checked
// and parsed in the background, and put in force as a whole. While anything is missing,
// damaged or cannot be read, the present list stays, the reason is logged, and it is tried
// again. A list is removed when its manifest is deleted.
//
// Package store writes lists. Watch.Ready waits for them at the start of a program.
// lists.KeepCopies keeps copies for a start while etcd is down:
//
//	lists, err := source.WatchLists(ctx, engine.Lists(), lists.KeepCopies("/var/lib/shop/lists", "shop"))
func (s *Source) WatchLists(ctx context.Context, registry *list.Registry, opts ...lists.Option) (*lists.Watch, error) {
	s.lists.Store(registry)
	from := *s
	from.keys.Documents = listformat.ManifestKeys(s.keys.Lists)
	from.opts.Instance = ""
	from.connection = &connection{}
	return lists.Start(ctx, lists.Config{
		Registry: registry,
		Source:   &from,
		Open:     from.openList,
		MinRetry: s.opts.MinBackoff,
		MaxRetry: maxListRetry * s.opts.MaxBackoff,
		Logger:   s.opts.Logger,
		Clock:    s.opts.Clock,
	}.With(opts...))
}

// connection is the present connection of a run that follows lists, for the goroutine
// that reads their chunks.
type connection struct {
	mu      sync.Mutex // guards the fields below
	kv      pb.KVClient
	members int
}

func (c *connection) set(conn *grpc.ClientConn, members int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kv, c.members = pb.NewKVClient(conn), members
}

func (c *connection) get() (kv pb.KVClient, members int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kv, c.members
}

// listDocument converts the manifest of a list to a document.
func listDocument(d core.Document, pair *mvccpb.KeyValue) core.Document {
	manifest, err := listformat.ParseManifest(pair.Value)
	if err != nil {
		d.Err = fmt.Errorf("etcd: key %s: %w", pair.Key, err)
		return d
	}
	d.Data = lists.Manifest(lists.Digest(manifest.Digest), manifest.Confirmed)
	return d
}

// openList opens the text of a list.
func (s *Source) openList(ctx context.Context, document lists.Document) (lists.Text, error) {
	text, err := listformat.Open(ctx, s.readRange, s.keys.Lists, document.Name)
	if err != nil {
		return lists.Text{}, fmt.Errorf("etcd: %w", err)
	}
	return lists.Text{ReadCloser: text, Digest: lists.Digest(text.Manifest.Digest)}, nil
}

// chunkAttempts is how often a chunk is asked for before the list is read anew.
const chunkAttempts = 4

// readRange makes one request on the present connection. It tries again, on other members
// if there are any, because a list has many chunks and one that is not answered in time
// should not cost all others.
func (s *Source) readRange(ctx context.Context, request *pb.RangeRequest) (found *pb.RangeResponse, err error) {
	pause := retry.Backoff{Min: s.opts.MinBackoff, Max: s.opts.MaxBackoff}
	for attempt := 1; ; attempt++ {
		kv, members := s.connection.get()
		found, err = s.readOnce(ctx, kv, request, grpc.WaitForReady(true))
		if !unreachable(err) || attempt >= max(chunkAttempts, members) || !retry.Sleep(ctx, s.opts.Clock, pause.Next()) {
			return found, err
		}
	}
}

// readOnce makes one request.
func (s *Source) readOnce(
	ctx context.Context, kv pb.KVClient, request *pb.RangeRequest, opts ...grpc.CallOption,
) (*pb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), s.opts.RequestTimeout)
	defer cancel()
	found, err := kv.Range(ctx, request, opts...)
	return found, rpctypes.Error(err)
}
