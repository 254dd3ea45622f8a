package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/core"
)

// run is one run of a source. It belongs to the goroutine of Run.
type run struct {
	*Source
	sink     core.Sink
	pause    backoff
	reporter *reporter // nil without an instance

	dialled  *clientv3.Client    // with the configuration of Open
	cluster  uint64              // that was read last
	revision int64               // of what was applied last
	names    map[string]struct{} // of the documents that there are
}

// session reads all documents and follows them until that fails. It returns
// why.
func (r *run) session(ctx context.Context) error {
	client, err := r.dial(ctx)
	if err != nil {
		return err
	}
	if client.Ctx().Err() != nil {
		return ErrClientClosed
	}
	conn := client.ActiveConnection()
	if r.pause.failing() {
		// The connection's own backoff grows to minutes. That of the source
		// counts.
		conn.ResetConnectBackoff()
	}
	r.reporter.start(ctx, conn)
	err = r.follow(ctx, conn)
	if client.Ctx().Err() != nil {
		return ErrClientClosed
	}
	return err
}

func (r *run) follow(ctx context.Context, conn *grpc.ClientConn) error {
	all, err := r.readAll(ctx, pb.NewKVClient(conn))
	if err != nil {
		return fmt.Errorf("etcd: reading %s: %w", r.keys.Documents, err)
	}
	r.checkHistory(all.header)
	if err := r.watch(ctx, conn, all.change); err != nil {
		return fmt.Errorf("etcd: watching %s: %w", r.keys.Documents, err)
	}
	return nil
}

// checkHistory warns when the cluster that was read is not the one it was or has
// gone back.
func (r *run) checkHistory(header *pb.ResponseHeader) {
	if header.ClusterId != r.cluster && r.cluster != 0 || header.Revision < r.revision {
		r.opts.Logger.Warn("penstock: etcd cluster was restored or replaced, its documents are taken as they are",
			slog.String("source", r.Name()),
			slog.Int64("revision", header.Revision), slog.Int64("previous", r.revision))
	}
	r.cluster = header.ClusterId
}

// apply hands on a change and has it reported.
func (r *run) apply(change core.Change) {
	r.sink.Apply(change)
	r.reporter.stir()
}

// note keeps account of what there is after the change.
func (r *run) note(change core.Change) {
	r.revision = change.Revision
	if change.Complete {
		r.names = make(map[string]struct{}, len(change.Documents))
	}
	for _, document := range change.Documents {
		r.names[document.Name] = struct{}{}
	}
	for _, name := range change.Removed {
		delete(r.names, name)
	}
}

// dial returns the caller's client or one of the run's own.
func (r *run) dial(ctx context.Context) (*clientv3.Client, error) {
	if r.client != nil {
		return r.client, nil
	}
	if r.dialled == nil {
		config := r.config
		config.Context = ctx
		client, err := clientv3.New(config)
		if err != nil {
			return nil, fmt.Errorf("etcd: connecting: %w", err)
		}
		r.dialled = client
	}
	return r.dialled, nil
}

func (r *run) hangUp() {
	if r.dialled != nil {
		_ = r.dialled.Close()
	}
}

// callOptions make the first request fail at once when there is no connection,
// with the reason, and later ones wait until there is.
func (r *run) callOptions() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.WaitForReady(r.pause.failing()),
		grpc.MaxCallRecvMsgSize(math.MaxInt32),
	}
}
