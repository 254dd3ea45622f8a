package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/core"
)

const (
	reportTTL      = 15 * time.Second // of the lease that a report is under
	reportInterval = reportTTL / 3    // between two looks at it
	revokeTimeout  = time.Second      // at the most, when a run ends
)

// reporter keeps the report of a run in etcd. A nil one does nothing. Its fields
// belong to the goroutine that use starts, but for those used by the run.
type reporter struct {
	source  *Source
	sink    core.Sink
	self    Report
	conn    atomic.Pointer[grpc.ClientConn] // of the run at present; nil before there is one
	changed chan struct{}                   // holds one when the status may have changed
	running sync.WaitGroup                  // the goroutine

	kv      pb.KVClient
	leases  pb.LeaseClient
	lease   int64  // 0: there is none
	there   Report // as it was put last; zero when it is not there
	failing bool   // and that has been logged
}

// newReporter returns the reporter of a run, nil if none is wanted.
func newReporter(source *Source, sink core.Sink) *reporter {
	if source.opts.Instance == "" {
		return nil
	}
	return &reporter{source: source, sink: sink, self: source.identity(), changed: make(chan struct{}, 1)}
}

// use makes reports go through the connection, from now on and until ctx ends.
func (r *reporter) use(ctx context.Context, conn *grpc.ClientConn) {
	if r != nil && r.conn.Swap(conn) == nil {
		r.running.Go(func() { r.run(ctx) })
	}
}

// connect takes the connection that the run has at present.
func (r *reporter) connect() {
	conn := r.conn.Load()
	r.kv, r.leases = pb.NewKVClient(conn), pb.NewLeaseClient(conn)
}

// stir has the reporter look whether there is something new. It never blocks.
func (r *reporter) stir() {
	if r == nil {
		return
	}
	select {
	case r.changed <- struct{}{}:
	default: // it is about to look
	}
}

// wait returns when the goroutine has ended.
func (r *reporter) wait() {
	if r != nil {
		r.running.Wait()
	}
}

func (r *reporter) run(ctx context.Context) {
	defer r.retire(ctx)
	timer := r.source.opts.Clock.NewTimer(reportInterval)
	defer timer.Stop()
	for ctx.Err() == nil {
		err := r.refresh(ctx)
		if ctx.Err() == nil {
			r.judge(err)
		}
		timer.Reset(reportInterval)
		select {
		case <-ctx.Done():
		case <-r.changed:
		case <-timer.C():
		}
	}
}

// judge logs an error that begins a series.
func (r *reporter) judge(err error) {
	if err != nil && !r.failing {
		r.source.opts.Logger.Warn("penstock: this instance cannot report to etcd, its rules are not affected",
			slog.String("source", r.source.Name()), slog.String("instance", r.self.Instance), slog.Any("error", err))
	}
	r.failing = err != nil
}

// refresh sees to it that the report is there and true.
func (r *reporter) refresh(ctx context.Context) error {
	r.connect()
	if err := r.renew(ctx); err != nil {
		return fmt.Errorf("renewing the lease: %w", rpctypes.Error(err))
	}
	if r.lease == 0 {
		if err := r.grant(ctx); err != nil {
			return fmt.Errorf("obtaining a lease: %w", rpctypes.Error(err))
		}
	}
	report := r.self.fill(r.sink.Status())
	if reflect.DeepEqual(report, r.there) {
		return nil
	}
	r.there = Report{} // a request that fails may still have been carried out
	if err := r.put(ctx, report); err != nil {
		return fmt.Errorf("writing %s: %w", r.key(), rpctypes.Error(err))
	}
	r.there = report
	return nil
}

// renew renews the lease, if there is one, and looks whether it and the report
// are still there.
func (r *reporter) renew(ctx context.Context) error {
	if r.lease == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.source.opts.RequestTimeout)
	defer cancel()
	stream, err := r.leases.LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	// A failed Send is explained by the Recv that follows.
	_ = stream.Send(&pb.LeaseKeepAliveRequest{ID: r.lease})
	renewed, err := stream.Recv()
	if err != nil {
		return err
	}
	if renewed.TTL <= 0 {
		r.lease, r.there = 0, Report{}
		return nil
	}
	found, err := r.kv.Range(ctx, &pb.RangeRequest{Key: []byte(r.key()), CountOnly: true})
	if err != nil {
		return err
	}
	if found.Count == 0 {
		r.there = Report{}
	}
	return nil
}

func (r *reporter) grant(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.source.opts.RequestTimeout)
	defer cancel()
	granted, err := r.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(reportTTL / time.Second)})
	if err != nil {
		return err
	}
	r.lease, r.there = granted.ID, Report{}
	return nil
}

func (r *reporter) put(ctx context.Context, report Report) error {
	report.ReportedAt = r.source.opts.Clock.Now().Time()
	value, err := json.Marshal(report)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.source.opts.RequestTimeout)
	defer cancel()
	_, err = r.kv.Put(ctx, &pb.PutRequest{Key: []byte(r.key()), Value: value, Lease: r.lease})
	return err
}

// retire takes the report away, now that the run has ended. One that cannot be
// taken away goes with its lease.
func (r *reporter) retire(ctx context.Context) {
	if r.lease == 0 || r.failing {
		return
	}
	r.connect()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(revokeTimeout, r.source.opts.RequestTimeout))
	defer cancel()
	_, _ = r.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: r.lease})
}

func (r *reporter) key() string { return r.source.keys.Instances + r.self.Instance }
