package penstocksql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestAnswersSayWhetherTheDatabaseTurnsCallsAway(t *testing.T) {
	const accepted, rejected, ignored = outgoing.Accepted, outgoing.Rejected, outgoing.Ignored
	unknown := errors.New("authentication failed")
	for _, test := range []struct {
		err           error
		call, connect outgoing.Result
	}{
		{nil, accepted, accepted},
		{uniqueViolation, accepted, accepted},
		{internalError, accepted, accepted},
		{state("28P01"), accepted, accepted},
		{state("57014"), accepted, accepted}, // a time-out of a statement
		{tooManyConnections, rejected, rejected},
		{fmt.Errorf("further up: %w", tooManyConnections), rejected, rejected},
		{state("08006"), rejected, rejected},
		{state("57P01"), rejected, rejected},
		{state("57P03"), rejected, rejected},
		{unknown, accepted, rejected},
		{driver.ErrBadConn, rejected, rejected},
		{io.EOF, rejected, rejected},
		{io.ErrUnexpectedEOF, rejected, rejected},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, rejected, rejected},
		{context.DeadlineExceeded, rejected, rejected},
		{context.Canceled, ignored, ignored},
		{&core.BlockError{Kind: rule.Kind("other")}, ignored, ignored},
	} {
		call := penstocksql.Answer(penstocksql.Call{Op: penstocksql.Exec}, test.err)
		assert.Equal(t, outgoing.Answer{Result: test.call}, call, "exec: %v", test.err)
		connect := penstocksql.Answer(penstocksql.Call{Op: penstocksql.Connect}, test.err)
		assert.Equal(t, outgoing.Answer{Result: test.connect}, connect, "connect: %v", test.err)
	}
}

// throttled is a database with a throttle.
type throttled struct {
	*sql.DB
	throttle *outgoing.Throttle
}

func newThrottled(t *testing.T, f *fake, set rules.Set, options penstocksql.Options) throttled {
	t.Helper()
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: clock.NewVirtual(time.Unix(1e9, 0)), Seed: 1})
	require.NoError(t, err)
	options.Throttle = throttle
	return throttled{open(t, f, newEngine(t, set), options), throttle}
}

// counted returns how many answers accepted and rejected calls of a target.
func (d throttled) counted(target string) [2]uint64 {
	for _, of := range d.throttle.Stats().Targets {
		if of.Target == target {
			return [2]uint64{of.Accepted, of.Rejected}
		}
	}
	return [2]uint64{}
}

func TestEveryKindOfCallIsThrottled(t *testing.T) {
	db := newThrottled(t, &fake{}, rules.Set{}, penstocksql.Options{})
	ctx := t.Context()
	require.NoError(t, db.PingContext(ctx)) // and opens a connection
	var n int
	require.NoError(t, db.QueryRowContext(ctx, "query").Scan(&n))
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	prepared, err := tx.PrepareContext(ctx, "prepared")
	require.NoError(t, err)
	_, err = prepared.ExecContext(ctx)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	assert.Equal(t, [2]uint64{6, 0}, db.counted("sql"), "connect, ping, query, begin, prepare, exec")
}

func TestCallsAreNotRejectedTwiceByOneClosedConnection(t *testing.T) {
	bad := false
	f := &fake{fail: func(what string) error {
		if bad && strings.HasPrefix(what, "conn.Exec") {
			bad = false
			return driver.ErrBadConn
		}
		return nil
	}}
	db := newThrottled(t, f, rules.Set{}, penstocksql.Options{})
	exec := func() error { _, err := db.ExecContext(t.Context(), "exec"); return err }
	require.NoError(t, exec())
	bad = true
	require.NoError(t, exec())
	assert.Equal(t, [2]uint64{4, 0}, db.counted("sql"), "two connections and two statements; closing one while idle says nothing")
}

func TestDatabaseThatIsDownIsAskedLess(t *testing.T) {
	f := &fake{fail: func(string) error { return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} }}
	db := newThrottled(t, f, rules.Set{}, penstocksql.Options{})
	refused := 0
	for range 200 {
		if _, err := db.ExecContext(t.Context(), "exec"); errors.Is(err, outgoing.ErrThrottled) {
			require.ErrorIs(t, err, core.ErrBlocked)
			refused++
		}
	}
	assert.Greater(t, refused, 140)
	assert.Len(t, f.traced(), 200-refused)
}

func TestCallsThatARuleRefusesSayNothingOfTheDatabase(t *testing.T) {
	db := newThrottled(t, &fake{}, closed(), penstocksql.Options{})
	_, err := db.ExecContext(t.Context(), "exec")
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, [2]uint64{0, 0}, db.counted("sql"))
}

func TestThrottleLooksAtCallsWithoutAResource(t *testing.T) {
	db := newThrottled(t, &fake{}, closed(), penstocksql.Options{
		Resource: func(context.Context, penstocksql.Call) string { return "" },
	})
	_, err := db.ExecContext(t.Context(), "exec")
	require.NoError(t, err)
	assert.Equal(t, [2]uint64{2, 0}, db.counted("sql"))
}

func TestTargetAndAnswerDecideWhatIsThrottled(t *testing.T) {
	f := &fake{}
	db := newThrottled(t, f, rules.Set{}, penstocksql.Options{
		Target: func(_ context.Context, c penstocksql.Call) string {
			if c.InTransaction || c.Op == penstocksql.Connect || c.Op == penstocksql.Begin {
				return ""
			}
			return "replica"
		},
		Answer: func(c penstocksql.Call, err error) outgoing.Answer {
			answer := penstocksql.Answer(c, err)
			answer.RetryAfter = time.Minute
			return answer
		},
	})
	exec := func() error { _, err := db.ExecContext(t.Context(), "exec"); return err }
	require.NoError(t, exec())
	require.ErrorIs(t, exec(), outgoing.ErrPaused)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "exec")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	assert.Equal(t, [2]uint64{1, 0}, db.counted("replica"))
	assert.Len(t, db.throttle.Stats().Targets, 1)
}

func TestThrottlingAllocatesNothing(t *testing.T) {
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{})
	require.NoError(t, err)
	db := sql.OpenDB(penstocksql.WrapConnector(&quick{}, newEngine(t, rules.Set{}), penstocksql.Options{Throttle: throttle}))
	defer func() { _ = db.Close() }()
	ctx := context.Background()
	bare, throttled := uses(ctx, quickDB(t, nil)), uses(ctx, db)
	for what, use := range throttled {
		require.NoError(t, use(), what)
		want := allocs(func() { _ = bare[what]() })
		assert.LessOrEqual(t, allocs(func() { _ = use() }), want, what)
	}
}
