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
)

// run is one run of a source. It belongs to the goroutine of Run.
type run struct {
	*Source
	sink     core.Sink
	pause    backoff
	reporter *reporter // nil without an instance

	dialled *clientv3.Client // with the configuration of Open
	suspect bool             // dialled is to be replaced
	members int              // of the cluster, as far as the client knows
	failing bool             // the last attempt failed, and none has succeeded since
	since   clock.Instant    // of the connection; 0 while there is none
	why     error            // there is none, as it was reported last
	at      moment           // that was read or applied last

	// versions are the revisions of the documents that there are, by name, and
	// that of the confirmation, under "".
	versions map[string]int64
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
	if r.failing {
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

// connected notes that the documents can be read.
func (r *run) connected() { r.failing, r.since, r.why = false, r.opts.Clock.Now(), nil }

// reason returns the error to report. While attempts fail for the same reason that
// is the same error, whatever numbers are in it: whoever logs what is new does not
// take another port for another reason.
func (r *run) reason(err error) error {
	if r.why == nil || meaning(r.why) != meaning(err) {
		r.why = err
	}
	return r.why
}

// lost notes that they cannot be read any longer and returns how long to pause.
// Only a connection that has lasted makes the pause a short one again: one that
// is lost right after each read would otherwise mean many reads a second.
func (r *run) lost() (pause time.Duration) {
	if r.since != 0 && r.opts.Clock.Now().Sub(r.since) >= r.opts.MaxBackoff {
		r.pause.reset()
	}
	r.failing, r.since = true, 0
	return r.pause.next()
}

// documents returns how many documents there are.
func (r *run) documents() int {
	if _, there := r.versions[""]; there {
		return len(r.versions) - 1
	}
	return len(r.versions)
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
		grpc.WaitForReady(r.failing),
		grpc.MaxCallRecvMsgSize(math.MaxInt32),
	}
}
