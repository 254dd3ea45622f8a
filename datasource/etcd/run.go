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

	dialled *clientv3.Client    // with the configuration of Open
	suspect bool                // dialled is to be replaced
	members int                 // of the cluster, as far as the client knows
	at      moment              // that was read or applied last
	names   map[string]struct{} // of the documents that there are
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
	r.members = max(1, len(client.Endpoints()))
	if r.pause.failing() {
		// The connection's own backoff grows to minutes. That of the source
		// counts.
		conn.ResetConnectBackoff()
	}
	r.reporter.use(ctx, conn)
	err = r.follow(ctx, conn)
	switch {
	case client.Ctx().Err() != nil:
		return ErrClientClosed
	case unreachable(err):
		// A new connection may end at a member that can, where one address
		// stands for several, and shows what certificates there are by then.
		r.suspect = true
	}
	return err
}

func (r *run) follow(ctx context.Context, conn *grpc.ClientConn) error {
	all, err := r.readAll(ctx, pb.NewKVClient(conn))
	if err != nil {
		return fmt.Errorf("etcd: reading %s: %w", r.keys.Documents, err)
	}
	r.checkHistory(momentOf(all.header))
	if err := r.watch(ctx, conn, all.change); err != nil {
		return fmt.Errorf("etcd: watching %s: %w", r.keys.Documents, err)
	}
	return nil
}

// checkHistory warns when the cluster that was read is not the one it was or has
// gone back.
func (r *run) checkHistory(read moment) {
	if !r.at.precedes(read) {
		r.opts.Logger.Warn("penstock: etcd cluster was restored or replaced, its documents are taken as they are",
			slog.String("source", r.Name()),
			slog.Int64("revision", read.revision), slog.Int64("previous", r.at.revision))
	}
	r.at = read
}

// apply hands on a change and has it reported.
func (r *run) apply(change core.Change) {
	r.sink.Apply(change)
	r.reporter.stir()
}

// note keeps account of what there is after the change.
func (r *run) note(change core.Change) {
	r.at.revision = change.Revision
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
	if r.dialled != nil && !r.suspect {
		return r.dialled, nil
	}
	client, err := r.dialAnew(ctx)
	if err != nil {
		return nil, fmt.Errorf("etcd: connecting: %w", err)
	}
	r.reporter.use(ctx, client.ActiveConnection()) // before the other one is closed
	r.hangUp()
	r.dialled, r.suspect = client, false
	return client, nil
}

func (r *run) dialAnew(ctx context.Context) (*clientv3.Client, error) {
	config := r.config
	config.Context = ctx
	if r.opts.TLS != nil {
		secure, err := r.opts.TLS()
		if err != nil {
			return nil, err
		}
		config.TLS = secure
	}
	return clientv3.New(config)
}

// hangUp closes the run's own client, if there is one.
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
