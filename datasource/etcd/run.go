package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/retry"
)

// run is the state of one call of [Source.Run]. Only its goroutine uses it.
type run struct {
	*Source
	sink     core.Sink
	backoff  retry.Backoff
	reporter *reporter // nil without an instance name

	ownClient   *clientv3.Client // made by this run; nil with a client of the caller
	redial      bool             // ownClient is to be replaced
	members     int              // of the cluster, as far as the client knows
	failing     bool             // the last attempt failed
	connectedAt clock.Instant    // when the documents were last read; 0 while disconnected
	lastErr     error            // the disconnection, as reported last; nil while connected
	position    position         // read or applied last

	// versions are the revisions of the documents, by name, and that of the
	// confirmation, under "".
	versions map[string]int64
}

// connectAndFollow reads all documents and follows their changes until an error occurs,
// which it returns.
func (r *run) connectAndFollow(ctx context.Context) error {
	client, err := r.dial(ctx)
	if err != nil {
		return err
	}
	if client.Ctx().Err() != nil {
		return ErrClientClosed
	}
	conn := client.ActiveConnection()
	r.members = max(1, len(client.Endpoints()))
	if r.failing {
		// The connection's own backoff grows to minutes. Only that of the source
		// applies.
		conn.ResetConnectBackoff()
	}
	r.reporter.setConnection(ctx, conn)
	if r.connection != nil {
		r.connection.set(conn, r.members)
	}
	err = r.follow(ctx, conn)
	switch {
	case client.Ctx().Err() != nil:
		return ErrClientClosed
	case unreachable(err):
		// If one address stands for several members, a new connection may reach
		// another one. It also uses renewed certificates.
		r.redial = true
	}
	return err
}

// checkHistory logs a warning if the cluster was replaced or restored since the
// last read.
func (r *run) checkHistory(read position) {
	if !r.position.precedes(read) {
		r.opts.Logger.Warn("penstock: etcd cluster was restored or replaced, its documents are taken as they are",
			slog.String("source", r.Name()),
			slog.Int64("revision", read.revision), slog.Int64("previous", r.position.revision))
	}
	r.position = read
}

// apply delivers a change to the sink and notifies the reporter.
func (r *run) apply(change core.Change) {
	r.sink.Apply(change)
	r.reporter.notify()
}

// markConnected notes that the documents have been read.
func (r *run) markConnected() { r.failing, r.connectedAt, r.lastErr = false, r.opts.Clock.Now(), nil }

// stableError returns the error to report. It returns the same error as before if only
// the digits differ, so that a log of new errors does not repeat for every port.
func (r *run) stableError(err error) error {
	if !retry.Alike(r.lastErr, err) {
		r.lastErr = err
	}
	return r.lastErr
}

// connectionLost notes that the connection is lost and returns how long to pause. Only a
// connection that lasted for MaxBackoff resets the pause: one that is lost right
// after each read would otherwise cause many reads a second.
func (r *run) connectionLost() (pause time.Duration) {
	if r.connectedAt != 0 && r.opts.Clock.Now().Sub(r.connectedAt) >= r.opts.MaxBackoff {
		r.backoff.Reset()
	}
	r.failing, r.connectedAt = true, 0
	return r.backoff.Next()
}

// documents returns how many documents there are.
func (r *run) documents() int {
	if _, there := r.versions[""]; there {
		return len(r.versions) - 1
	}
	return len(r.versions)
}

// dial returns the caller's client, or one that it makes for this run.
func (r *run) dial(ctx context.Context) (*clientv3.Client, error) {
	if r.client != nil {
		return r.client, nil
	}
	if r.ownClient != nil && !r.redial {
		return r.ownClient, nil
	}
	client, err := r.newClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("etcd: connecting: %w", err)
	}
	r.reporter.setConnection(ctx, client.ActiveConnection()) // before the other one is closed
	r.closeOwnClient()
	r.ownClient, r.redial = client, false
	return client, nil
}

func (r *run) newClient(ctx context.Context) (*clientv3.Client, error) {
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

// closeOwnClient closes the client that this run has made, if any.
func (r *run) closeOwnClient() {
	if r.ownClient != nil {
		_ = r.ownClient.Close()
	}
}

// callOptions make the first request without a connection fail at once, with the
// reason, and the requests of later attempts wait for a connection.
func (r *run) callOptions() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.WaitForReady(r.failing),
		grpc.MaxCallRecvMsgSize(math.MaxInt32),
	}
}
