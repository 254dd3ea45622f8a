package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

	lease    int64     // 0: there is none
	renewals *renewals // of the lease; nil when there is no stream for them
	there    Report    // as it was put last; zero when it is not there
	failing  bool
	logged   complaint
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
	r.attempt(ctx, r.refresh)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.changed:
			r.attempt(ctx, r.refresh)
		case answer := <-r.answers():
			r.take(ctx, answer)
		case <-timer.C():
			timer.Reset(reportInterval)
			select {
			case answer := <-r.answers(): // it was there before the look, which asks how old the last one is
				r.take(ctx, answer)
			default:
			}
			r.attempt(ctx, r.look)
		}
	}
}

// attempt looks after the report and logs why that fails. That the run has replaced
// the connection, and closed the one in use, is no reason: the next attempt has another.
func (r *reporter) attempt(ctx context.Context, look func(context.Context) error) {
	conn := r.conn.Load()
	err := look(ctx)
	if status.Code(err) == codes.Canceled && r.conn.Load() != conn {
		return
	}
	r.judge(ctx, err)
}

// judge logs an error that begins a series or has another cause than the one before:
// a right that is missing is one cause, whether it fails to read or to write.
func (r *reporter) judge(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if r.failing = err != nil; !r.failing {
		r.logged = complaint{}
	} else if r.logged.next(errors.Unwrap(err), r.source.opts.Clock.Now()) {
		r.source.opts.Logger.Warn("penstock: this instance cannot report to etcd, its rules are not affected",
			slog.String("source", r.source.Name()), slog.String("instance", r.self.Instance), slog.Any("error", err))
	}
}

// look has the lease renewed and sees to it that the report is there and true. Its
// error wraps what the step that failed has failed for.
func (r *reporter) look(ctx context.Context) error {
	if err := r.renew(ctx); err != nil {
		return fmt.Errorf("renewing the lease: %w", rpctypes.Error(err))
	}
	if err := r.find(ctx); err != nil {
		return fmt.Errorf("reading %s: %w", r.key(), rpctypes.Error(err))
	}
	return r.refresh(ctx)
}

// refresh sees to it that the report is there, as far as is known, and true. Its
// error is like that of look.
func (r *reporter) refresh(ctx context.Context) error {
	isNew := r.lease == 0
	if isNew {
		if err := r.grant(ctx); err != nil {
			return fmt.Errorf("obtaining a lease: %w", rpctypes.Error(err))
		}
	}
	report := r.self.fill(r.sink.Status())
	if reflect.DeepEqual(report, r.there) {
		return nil
	}
	r.there = Report{} // a request that fails may still have been carried out
	if err := rpctypes.Error(r.put(ctx, report)); err != nil {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) && !isNew {
			r.lease = 0
			return r.refresh(ctx)
		}
		return fmt.Errorf("writing %s: %w", r.key(), err)
	}
	r.there = report
	return nil
}

// renew asks for a renewal of the lease, if there is one. The answer comes by
// itself: from a proxy after up to five seconds.
func (r *reporter) renew(ctx context.Context) error {
	opts, conn := r.source.opts, r.conn.Load()
	now := opts.Clock.Now()
	if r.renewals != nil && (r.renewals.conn != conn || now.Sub(r.renewals.heard) >= reportTTL) {
		r.closeRenewals()
	}
	if r.lease == 0 {
		return nil
	}
	if r.renewals == nil {
		opened, err := openRenewals(ctx, conn, opts.RequestTimeout, now)
		if err != nil {
			return err
		}
		r.renewals = opened
	}
	r.renewals.renew(r.lease)
	return nil
}

// answers returns where the answers to renewals come; nil when none can come.
func (r *reporter) answers() <-chan renewal {
	if r.renewals == nil {
		return nil
	}
	return r.renewals.answers
}

// take takes note of the answer to a renewal.
func (r *reporter) take(ctx context.Context, answer renewal) {
	if answer.err != nil {
		r.closeRenewals() // the next look opens another stream, and knows why it cannot
		return
	}
	r.renewals.heard = r.source.opts.Clock.Now()
	if answer.ttl <= 0 && answer.lease == r.lease {
		r.lease, r.there = 0, Report{} // both are gone
		r.attempt(ctx, r.refresh)
	}
}

func (r *reporter) closeRenewals() {
	if r.renewals != nil {
		r.renewals.close(r.endTimeout())
		r.renewals = nil
	}
}

// find looks whether the report is still there.
func (r *reporter) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.source.opts.RequestTimeout)
	defer cancel()
	found, err := pb.NewKVClient(r.conn.Load()).Range(ctx, &pb.RangeRequest{Key: []byte(r.key()), CountOnly: true})
	if err == nil && found.Count == 0 {
		r.there = Report{}
	}
	return err
}

func (r *reporter) grant(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.source.opts.RequestTimeout)
	defer cancel()
	granted, err := pb.NewLeaseClient(r.conn.Load()).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(reportTTL / time.Second)})
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
	_, err = pb.NewKVClient(r.conn.Load()).Put(ctx, &pb.PutRequest{Key: []byte(r.key()), Value: value, Lease: r.lease})
	return err
}

// retire takes the report away, now that the run has ended. One that cannot be
// taken away goes with its lease.
func (r *reporter) retire(ctx context.Context) {
	if r.lease != 0 && !r.failing {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.endTimeout())
		defer cancel()
		_, _ = pb.NewLeaseClient(r.conn.Load()).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: r.lease})
	}
	r.closeRenewals()
}

// endTimeout is how long the end of something may take.
func (r *reporter) endTimeout() time.Duration {
	return min(revokeTimeout, r.source.opts.RequestTimeout)
}

func (r *reporter) key() string { return r.source.keys.Instances + r.self.Instance }
