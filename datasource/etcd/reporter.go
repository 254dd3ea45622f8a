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
	reportTTL      = 15 * time.Second // of the lease of a report
	reportInterval = reportTTL / 3    // between two checks of the report
	revokeTimeout  = time.Second      // longest wait when a run ends
)

// reporter keeps the report of a run in etcd up to date. A nil reporter does
// nothing. The run calls setConnection, notify and wait; all else belongs to the
// goroutine that setConnection starts.
type reporter struct {
	source   *Source
	sink     core.Sink
	identity Report
	conn     atomic.Pointer[grpc.ClientConn] // of the run at present; nil before the first
	changed  chan struct{}                   // signals that the status may have changed
	running  sync.WaitGroup                  // waits for the goroutine

	lease    int64     // 0 if there is none
	renewals *renewals // of the lease; nil if no stream is open
	written  Report    // as written last; zero if it is not in etcd
	failing  bool
	logged   errorLog
}

// newReporter returns the reporter of a run, nil if the source has no instance name.
func newReporter(source *Source, sink core.Sink) *reporter {
	if source.opts.Instance == "" {
		return nil
	}
	return &reporter{source: source, sink: sink, identity: source.identity(), changed: make(chan struct{}, 1)}
}

// setConnection sets the connection for reports. The first call starts the goroutine, which
// runs until ctx ends.
func (r *reporter) setConnection(ctx context.Context, conn *grpc.ClientConn) {
	if r != nil && r.conn.Swap(conn) == nil {
		r.running.Go(func() { r.run(ctx) })
	}
}

// notify tells the reporter that the status may have changed. It never blocks.
func (r *reporter) notify() {
	if r == nil {
		return
	}
	select {
	case r.changed <- struct{}{}:
	default: // a notification is pending
	}
}

// wait returns when the goroutine has ended.
func (r *reporter) wait() {
	if r != nil {
		r.running.Wait()
	}
}

func (r *reporter) run(ctx context.Context) {
	defer r.withdraw(ctx)
	timer := r.source.opts.Clock.NewTimer(reportInterval)
	defer timer.Stop()
	lists := r.listsChanged() // before the report is made: what changes after it is reported next
	r.attempt(ctx, r.refresh)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.changed:
			r.attempt(ctx, r.refresh)
		case <-lists:
			lists = r.listsChanged()
			r.attempt(ctx, r.refresh)
		case answer := <-r.answers():
			r.handleRenewal(ctx, answer)
		case <-timer.C():
			timer.Reset(reportInterval)
			select {
			case answer := <-r.answers(): // handled first, because the check asks how old the last answer is
				r.handleRenewal(ctx, answer)
			default:
			}
			lists = r.listsChanged() // they may be watched by now
			r.attempt(ctx, r.check)
		}
	}
}

// listsChanged returns a channel that is closed when a list changes from now on; nil if none are watched.
func (r *reporter) listsChanged() <-chan struct{} {
	registry, _ := r.source.watchedLists()
	if registry == nil {
		return nil
	}
	return registry.Changed()
}

// attempt calls a function that updates the report and logs its error. It ignores
// the error if the run has replaced and closed the connection meanwhile: the next
// attempt uses the new one.
func (r *reporter) attempt(ctx context.Context, step func(context.Context) error) {
	conn := r.conn.Load()
	err := step(ctx)
	if status.Code(err) == codes.Canceled && r.conn.Load() != conn {
		return
	}
	r.logError(ctx, err)
}

// logError logs an error unless it has the same cause as the one logged before. A
// missing permission is one cause, whether reading or writing fails.
func (r *reporter) logError(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if r.failing = err != nil; !r.failing {
		r.logged = errorLog{}
	} else if r.logged.shouldLog(errors.Unwrap(err), r.source.opts.Clock.Now()) {
		r.source.opts.Logger.Warn("penstock: this instance cannot report to etcd, its rules are not affected",
			slog.String("source", r.source.Name()), slog.String("instance", r.identity.Instance), slog.Any("error", err))
	}
}

// check renews the lease and makes sure that the report is in etcd and up to date.
// Its error wraps the cause.
func (r *reporter) check(ctx context.Context) error {
	if err := r.renew(ctx); err != nil {
		return fmt.Errorf("renewing the lease: %w", rpctypes.Error(err))
	}
	if err := r.checkExists(ctx); err != nil {
		return fmt.Errorf("reading %s: %w", r.key(), rpctypes.Error(err))
	}
	return r.refresh(ctx)
}

// refresh writes the report if it differs from the one written last. Its error
// wraps the cause.
func (r *reporter) refresh(ctx context.Context) error {
	isNew := r.lease == 0
	if isNew {
		if err := r.grant(ctx); err != nil {
			return fmt.Errorf("obtaining a lease: %w", rpctypes.Error(err))
		}
	}
	report := r.identity.withStatus(r.sink.Status()).withLists(r.source.watchedLists())
	if reflect.DeepEqual(report, r.written) {
		return nil
	}
	r.written = Report{} // a failed request may still have been carried out
	if err := rpctypes.Error(r.put(ctx, report)); err != nil {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) && !isNew {
			r.lease = 0
			return r.refresh(ctx)
		}
		return fmt.Errorf("writing %s: %w", r.key(), err)
	}
	r.written = report
	return nil
}

// renew asks for a renewal of the lease, if there is one. It does not wait for the
// answer, which a proxy sends after up to five seconds.
func (r *reporter) renew(ctx context.Context) error {
	opts, conn := r.source.opts, r.conn.Load()
	now := opts.Clock.Now()
	if r.renewals != nil && (r.renewals.conn != conn || now.Sub(r.renewals.lastAnswer) >= reportTTL) {
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

// answers returns the channel of answers to renewals, nil without a stream.
func (r *reporter) answers() <-chan renewal {
	if r.renewals == nil {
		return nil
	}
	return r.renewals.answers
}

// handleRenewal handles the answer to a renewal.
func (r *reporter) handleRenewal(ctx context.Context, answer renewal) {
	if answer.err != nil {
		r.closeRenewals() // the next check opens another stream, or returns why it cannot
		return
	}
	r.renewals.lastAnswer = r.source.opts.Clock.Now()
	if answer.ttl <= 0 && answer.lease == r.lease {
		r.lease, r.written = 0, Report{} // the lease has expired, and the report with it
		r.attempt(ctx, r.refresh)
	}
}

func (r *reporter) closeRenewals() {
	if r.renewals != nil {
		r.renewals.close(r.endTimeout())
		r.renewals = nil
	}
}

// checkExists checks whether the report is still in etcd.
func (r *reporter) checkExists(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.source.opts.RequestTimeout)
	defer cancel()
	found, err := pb.NewKVClient(r.conn.Load()).Range(ctx, &pb.RangeRequest{Key: []byte(r.key()), CountOnly: true})
	if err == nil && found.Count == 0 {
		r.written = Report{}
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
	r.lease, r.written = granted.ID, Report{}
	return nil
}

func (r *reporter) put(ctx context.Context, report Report) error {
	report.ReportedAt = presentTime(r.source.opts.Clock)
	value, err := json.Marshal(report)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.source.opts.RequestTimeout)
	defer cancel()
	_, err = pb.NewKVClient(r.conn.Load()).Put(ctx, &pb.PutRequest{Key: []byte(r.key()), Value: value, Lease: r.lease})
	return err
}

// withdraw removes the report when the run ends. If that fails, the report expires
// with its lease.
func (r *reporter) withdraw(ctx context.Context) {
	if r.lease != 0 && !r.failing {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.endTimeout())
		defer cancel()
		_, _ = pb.NewLeaseClient(r.conn.Load()).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: r.lease})
	}
	r.closeRenewals()
}

// endTimeout is how long revoking the lease or closing a stream may take.
func (r *reporter) endTimeout() time.Duration {
	return min(revokeTimeout, r.source.opts.RequestTimeout)
}

func (r *reporter) key() string { return r.source.keys.Instances + r.identity.Instance }
