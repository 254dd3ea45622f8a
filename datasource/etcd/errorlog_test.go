package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/clock"
)

func TestErrorIsLoggedAgainWhenItsTextChanges(t *testing.T) {
	reset := func(port int) error {
		return fmt.Errorf("read tcp 127.0.0.1:%d: connection reset by peer", port)
	}
	denied := errors.New("etcdserver: permission denied")
	var c errorLog
	var now clock.Instant
	for _, step := range []struct {
		after time.Duration
		err   error
		want  bool
	}{
		{0, reset(41234), true},
		{time.Minute, reset(41234), false},
		{time.Minute, reset(51235), false},
		{0, denied, true},
		{time.Minute, denied, false},
		{0, reset(41236), true},
		{time.Millisecond, denied, false},
		{time.Second - 2*time.Millisecond, denied, false},
		{time.Millisecond, denied, true},
	} {
		now = now.Add(step.after)
		assert.Equal(t, step.want, c.shouldLog(step.err, now), "%v at %v", step.err, now)
	}
	lines := 0
	for i := range 10_000 {
		now = now.Add(time.Millisecond)
		if c.shouldLog([]error{reset(i), denied}[i%2], now) {
			lines++
		}
	}
	assert.LessOrEqual(t, lines, 11, "in ten seconds")
	assert.GreaterOrEqual(t, lines, 5)
}

func TestErrorsThatDifferOnlyInDigitsAreReportedAsOne(t *testing.T) {
	first, other := errors.New("read tcp 127.0.0.1:41234: EOF"), errors.New("permission denied")
	r := &run{Source: &Source{opts: Options{Clock: clock.System()}}}
	assert.Equal(t, first, r.stableError(first))
	assert.Equal(t, first, r.stableError(errors.New("read tcp 127.0.0.1:51235: EOF")))
	assert.Equal(t, other, r.stableError(other))
	assert.Equal(t, first, r.stableError(first))
	r.markConnected()
	again := errors.New("read tcp 127.0.0.1:51236: EOF")
	assert.Equal(t, again, r.stableError(again))
}

// A change of the documents writes the report, and the periodic check reads it:
// both fail for the same cause.
func TestMissingPermissionIsLoggedOnceForReadAndWrite(t *testing.T) {
	var log bytes.Buffer
	virtual := clock.NewVirtual(time.Now())
	r := reporter{source: &Source{opts: Options{Clock: virtual, Logger: slog.New(slog.NewTextHandler(&log, nil))}}}
	denied, away := errors.New("etcdserver: permission denied"), errors.New("connection refused")
	for range 10 {
		r.logError(t.Context(), fmt.Errorf("reading it: %w", denied))
		virtual.Advance(time.Minute)
		r.logError(t.Context(), fmt.Errorf("writing it: %w", denied))
		virtual.Advance(time.Minute)
	}
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")), log.String())
	r.logError(t.Context(), fmt.Errorf("writing it: %w", away))
	assert.Equal(t, 2, bytes.Count(log.Bytes(), []byte("\n")), log.String())
	assert.Contains(t, log.String(), "writing it: connection refused")
}

func TestErrorOnReplacedConnectionIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	r := reporter{source: &Source{opts: Options{Clock: clock.System(), Logger: slog.New(slog.NewTextHandler(&log, nil))}}}
	replacing := func(code codes.Code) func(context.Context) error {
		return func(context.Context) error {
			r.conn.Store(new(grpc.ClientConn))
			return fmt.Errorf("renewing the lease: %w", status.Error(code, "the client connection is closing"))
		}
	}
	r.attempt(t.Context(), replacing(codes.Canceled))
	assert.Empty(t, log.String())
	r.attempt(t.Context(), replacing(codes.Unavailable))
	assert.Contains(t, log.String(), "Unavailable")
}

func TestRenewalOnHangingServerFailsWithTimeout(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{silent.Addr().String()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	_, err = openRenewals(t.Context(), client.ActiveConnection(), 50*time.Millisecond, 1)
	require.EqualError(t, err, "no sign of life: no answer within 50ms")
}
