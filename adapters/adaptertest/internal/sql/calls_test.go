package penstocksql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// closed is a set that refuses all calls.
func closed() rules.Set {
	return rules.Set{Isolation: []isolation.Rule{{Name: "closed", Match: "*", Limit: 0}}}
}

func TestCallsHaveTheirResources(t *testing.T) {
	engine, f := newEngine(t, rules.Set{}), &fake{}
	db := open(t, f, engine, penstocksql.Options{})
	ctx := t.Context()
	require.NoError(t, db.PingContext(ctx))
	_, err := db.ExecContext(ctx, "exec")
	require.NoError(t, err)
	var n int
	require.NoError(t, db.QueryRowContext(ctx, "query").Scan(&n))
	prepared, err := db.PrepareContext(ctx, "prepared")
	require.NoError(t, err)
	_, err = prepared.ExecContext(ctx)
	require.NoError(t, err)
	require.NoError(t, prepared.QueryRowContext(ctx).Scan(&n))
	require.NoError(t, prepared.Close())
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, "exec")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	want := map[string]uint64{
		"sql:connect": 1, "sql:ping": 1, "sql:exec": 3, "sql:query": 2, "sql:prepare": 1, "sql:begin": 1,
	}
	for resource, calls := range want {
		got := totals(engine, resource)
		assert.Equal(t, calls, got.Passed, resource)
		assert.Equal(t, calls, got.Completed, resource)
		assert.Zero(t, got.Failed, resource)
	}
	assert.Len(t, adaptertest.Called(engine), len(want))
}

func TestQueryLastsUntilItsRowsAreClosed(t *testing.T) {
	engine := newEngine(t, rules.Set{})
	db := open(t, &fake{}, engine, penstocksql.Options{})
	inFlight := func() int64 { return totals(engine, "sql:query").InFlight }
	for name, finish := range map[string]func(*sql.Rows, context.CancelFunc){
		"closed":   func(rows *sql.Rows, _ context.CancelFunc) { require.NoError(t, rows.Close()) },
		"canceled": func(_ *sql.Rows, cancel context.CancelFunc) { cancel() },
		"read to the end": func(rows *sql.Rows, _ context.CancelFunc) {
			for more := true; more; more = rows.NextResultSet() {
				for rows.Next() {
					assert.EqualValues(t, 1, inFlight())
				}
			}
			require.NoError(t, rows.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rows, err := db.QueryContext(ctx, "query")
			require.NoError(t, err)
			assert.EqualValues(t, 1, inFlight())
			finish(rows, cancel)
			require.Eventually(t, func() bool { return inFlight() == 0 }, eventTimeout, time.Millisecond)
			require.NoError(t, rows.Close())
			assert.Zero(t, inFlight())
		})
	}
}

func TestSeveralRowsOfAConnectionAreCallsOfTheirOwn(t *testing.T) {
	engine := newEngine(t, rules.Set{})
	db := open(t, &fake{}, engine, penstocksql.Options{})
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var all []*sql.Rows
	for i := range 3 {
		rows, err := tx.QueryContext(t.Context(), fmt.Sprint(i))
		require.NoError(t, err)
		all = append(all, rows)
	}
	assert.EqualValues(t, 3, totals(engine, "sql:query").InFlight)
	for i, rows := range all {
		assert.True(t, rows.Next(), "they stay readable while others are closed")
		require.NoError(t, rows.Close())
		assert.EqualValues(t, 2-i, totals(engine, "sql:query").InFlight)
	}
	require.NoError(t, tx.Rollback())
}

func TestRefusedCallDoesNotReachTheDriver(t *testing.T) {
	for what, call := range map[string]func(context.Context, *sql.Conn) error{
		"sql:query": func(ctx context.Context, c *sql.Conn) error {
			_, err := c.QueryContext(ctx, "query") //nolint:sqlclosecheck,rowserrcheck // there are none
			return err
		},
		"sql:exec":    func(ctx context.Context, c *sql.Conn) error { _, err := c.ExecContext(ctx, "exec"); return err },
		"sql:prepare": func(ctx context.Context, c *sql.Conn) error { _, err := c.PrepareContext(ctx, "prepare"); return err },
		"sql:begin":   func(ctx context.Context, c *sql.Conn) error { _, err := c.BeginTx(ctx, nil); return err },
		"sql:ping":    func(ctx context.Context, c *sql.Conn) error { return c.PingContext(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			engine, f := newEngine(t, limited(what, 0)), &fake{}
			db := open(t, f, engine, penstocksql.Options{})
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			err = call(t.Context(), conn)
			var block *core.BlockError
			require.ErrorAs(t, err, &block)
			assert.Equal(t, what, block.Resource)
			assert.EqualValues(t, 1, totals(engine, what).Blocked, "it was not tried again")
			assert.Equal(t, []string{"open db"}, f.traced())
			require.NoError(t, conn.Close())
			assert.Equal(t, 1, db.Stats().Idle, "the connection is as good as before")
		})
	}
}

func TestRefusedConnectionIsAnErrorOfTheCall(t *testing.T) {
	engine, f := newEngine(t, limited("sql:connect", 0)), &fake{}
	db := open(t, f, engine, penstocksql.Options{})
	require.ErrorIs(t, db.PingContext(t.Context()), core.ErrBlocked)
	assert.EqualValues(t, 1, totals(engine, "sql:connect").Blocked, "it was not tried again")
	assert.Empty(t, f.traced())
}

func TestWhatFreesResourcesAlwaysPasses(t *testing.T) {
	engine, f := newEngine(t, rules.Set{}), &fake{}
	db := open(t, f, engine, penstocksql.Options{})
	ctx := t.Context()
	conn, err := db.Conn(ctx)
	require.NoError(t, err)
	tx, err := conn.BeginTx(ctx, nil)
	require.NoError(t, err)
	rows, err := tx.QueryContext(ctx, "query")
	require.NoError(t, err)
	prepared, err := tx.PrepareContext(ctx, "prepared")
	require.NoError(t, err)
	require.NoError(t, engine.Load(closed()))
	_, err = prepared.ExecContext(ctx)
	require.ErrorIs(t, err, core.ErrBlocked)
	require.NoError(t, rows.Close())
	require.NoError(t, prepared.Close())
	require.NoError(t, tx.Commit())
	for _, query := range []string{"COMMIT", " rollback;\n", "ROLLBACK TO SAVEPOINT a", "end", "UNLOCK TABLES", "release a"} {
		_, err = conn.ExecContext(ctx, query)
		require.NoError(t, err, query)
	}
	for _, query := range []string{"COMMIT; DELETE FROM a", "committed", "ENDURE", "", ";", "SELECT 1", "EXPLAIN COMMIT", "DELETE"} {
		_, err = conn.ExecContext(ctx, query)
		require.ErrorIs(t, err, core.ErrBlocked, query)
	}
	require.NoError(t, conn.Close())
}

func TestLimitHoldsExactlyUnderConcurrency(t *testing.T) {
	engine, f := newEngine(t, limited("sql:exec", 50)), &fake{}
	db := open(t, f, engine, penstocksql.Options{})
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 25 {
				if _, err := db.ExecContext(t.Context(), "exec"); err != nil {
					assert.ErrorIs(t, err, core.ErrBlocked)
				}
			}
		})
	}
	done.Wait()
	execs := 0
	for _, what := range f.traced() {
		if strings.HasPrefix(what, "conn.ExecContext") {
			execs++
		}
	}
	assert.Equal(t, 50, execs)
	assert.EqualValues(t, 150, totals(engine, "sql:exec").Blocked)
}

func TestNeverMoreQueriesAtOnceThanTheLimit(t *testing.T) {
	three := rules.Set{Isolation: []isolation.Rule{{Name: "three", Resource: "sql:query", Limit: 3, MaxWait: time.Hour}}}
	engine := newEngine(t, three)
	db := open(t, &fake{}, engine, penstocksql.Options{})
	var open, most atomic.Int64
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 50 {
				rows, err := db.QueryContext(t.Context(), "query")
				if !assert.NoError(t, err) {
					return
				}
				now := open.Add(1)
				for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
				}
				assert.True(t, rows.Next())
				open.Add(-1)
				assert.NoError(t, rows.Close())
			}
		})
	}
	done.Wait()
	assert.LessOrEqual(t, most.Load(), int64(3))
	assert.EqualValues(t, 400, totals(engine, "sql:query").Completed)
}

func TestStatementThatTheDriverWantsPreparedIsOneCall(t *testing.T) {
	seen, engine := record(t, "op")
	f := &fake{}
	f.fail = func(what string) error {
		if strings.HasPrefix(what, "conn.Exec") || strings.HasPrefix(what, "conn.Query") {
			return driver.ErrSkip
		}
		if strings.Contains(what, "broken") {
			return errors.New("no")
		}
		return nil
	}
	db := open(t, f, engine, withoutConnections())
	ctx := t.Context()
	_, err := db.ExecContext(ctx, "exec", 1)
	require.NoError(t, err)
	var n int
	require.NoError(t, db.QueryRowContext(ctx, "query", 1).Scan(&n))
	_, err = db.ExecContext(ctx, "broken") // cannot be prepared
	require.Error(t, err)
	_, err = db.ExecContext(ctx, "args", struct{}{}) // cannot be converted
	require.Error(t, err)
	assert.Equal(t, []string{"sql:exec", "sql:query"}, adaptertest.Called(engine))
	assert.Equal(t, outcomes(succeeded, succeeded, failed), seen.Outcomes())
	assert.Zero(t, totals(engine, "sql:exec").InFlight+totals(engine, "sql:query").InFlight)
}

func TestSkippedCallThatIsNotMadeTakesNothing(t *testing.T) {
	engine := newEngine(t, limited("sql:exec", 2))
	f := &fake{stmt: func(s *fakeStmt) driver.Stmt { return struct{ driver.Stmt }{s} }}
	f.conn = func(c *fakeConn) driver.Conn {
		return struct {
			driver.Conn
			driver.ExecerContext
		}{c, c}
	}
	f.fail = func(what string) error {
		if strings.HasPrefix(what, "conn.ExecContext") {
			return driver.ErrSkip
		}
		return nil
	}
	db := open(t, f, engine, penstocksql.Options{})
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Raw(func(c any) error { // as a program might that uses the driver directly
		for range 10 {
			_, err := c.(driver.ExecerContext).ExecContext(t.Context(), "exec", nil)
			assert.Equal(t, driver.ErrSkip, err)
		}
		s, err := c.(driver.ConnPrepareContext).PrepareContext(t.Context(), "exec")
		require.NoError(t, err)
		return s.Close()
	}))
	for range 2 {
		_, err = conn.ExecContext(t.Context(), "exec")
		require.NoError(t, err)
	}
	_, err = conn.ExecContext(t.Context(), "exec")
	require.ErrorIs(t, err, core.ErrBlocked)
	require.NoError(t, conn.Close())
	assert.Zero(t, totals(engine, "sql:exec").InFlight)
}

func TestStaleConnectionsCountForNothing(t *testing.T) {
	engine := newEngine(t, limited("sql:exec", 2))
	f := &fake{}
	db := open(t, f, engine, penstocksql.Options{})
	db.SetMaxIdleConns(3)
	ctx := t.Context()
	var conns []*sql.Conn
	for range 2 { // that have worked
		conn, err := db.Conn(ctx)
		require.NoError(t, err)
		require.NoError(t, conn.PingContext(ctx))
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	stale := 2
	f.fail = func(what string) error {
		if strings.HasPrefix(what, "conn.Exec") && stale > 0 {
			stale--
			return driver.ErrBadConn
		}
		return nil
	}
	for range 2 {
		_, err := db.ExecContext(ctx, "exec")
		require.NoError(t, err)
	}
	_, err := db.ExecContext(ctx, "exec")
	require.ErrorIs(t, err, core.ErrBlocked, "two calls have taken the two tokens, two attempts none")
	got := totals(engine, "sql:exec")
	assert.EqualValues(t, 4, got.Passed)
	assert.Zero(t, got.Failed)
	assert.EqualValues(t, 3, totals(engine, "sql:connect").Passed)
}

func TestBadConnectionIsAFailureIfItIsNew(t *testing.T) {
	engine, f := newEngine(t, rules.Set{}), &fake{}
	f.fail = func(what string) error {
		if strings.HasPrefix(what, "conn.Exec") {
			return driver.ErrBadConn
		}
		return nil
	}
	db := open(t, f, engine, penstocksql.Options{})
	_, err := db.ExecContext(t.Context(), "exec")
	require.ErrorIs(t, err, driver.ErrBadConn)
	got := totals(engine, "sql:exec")
	assert.Equal(t, got.Passed, got.Failed)
	assert.Positive(t, got.Failed)
}

func TestBadConnectionIsAFailureWithinATransaction(t *testing.T) {
	engine, f := newEngine(t, rules.Set{}), &fake{}
	db := open(t, f, engine, penstocksql.Options{})
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	f.fail = func(what string) error {
		if strings.HasPrefix(what, "conn.Exec") {
			return driver.ErrBadConn
		}
		return nil
	}
	_, err = tx.ExecContext(t.Context(), "exec")
	require.ErrorIs(t, err, driver.ErrBadConn)
	assert.EqualValues(t, 1, totals(engine, "sql:exec").Failed)
	_ = tx.Rollback()
}

func TestContextsNameStatements(t *testing.T) {
	engine := newEngine(t, rules.Set{})
	db := open(t, &fake{}, engine, penstocksql.Options{})
	ctx := penstocksql.WithResource(t.Context(), "orders:list")
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRowContext(ctx, "query").Scan(&n))
	prepared, err := tx.PrepareContext(ctx, "prepared")
	require.NoError(t, err)
	_, err = prepared.ExecContext(ctx)
	require.NoError(t, err)
	_, err = tx.ExecContext(penstocksql.WithResource(ctx, ""), "not guarded")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	assert.Equal(t, []string{"orders:list", "sql:begin", "sql:connect", "sql:prepare"}, adaptertest.Called(engine))
	assert.EqualValues(t, 2, totals(engine, "orders:list").Completed)
}

func TestOptionsSeeTheCall(t *testing.T) {
	seen, engine := record(t, "table")
	var calls []penstocksql.Call
	db := open(t, &fake{}, engine, penstocksql.Options{
		Resource: func(_ context.Context, c penstocksql.Call) string {
			calls = append(calls, c)
			return "db"
		},
		Tokens: func(_ context.Context, c penstocksql.Call) int { return 1 + len(c.Args) },
		Attributes: func(_ context.Context, c penstocksql.Call) []core.Option {
			return []core.Option{core.String("table", strings.ToUpper(c.Query))}
		},
	})
	ctx := core.ContextWithPriority(t.Context(), rule.PriorityLow)
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, "a", "x", "y")
	require.NoError(t, err)
	last := seen.LastCall()
	assert.EqualValues(t, 3, last.Tokens)
	assert.Equal(t, rule.PriorityLow, last.Priority())
	table, _ := last.Attribute.Text()
	assert.Equal(t, "A", table)
	require.NoError(t, tx.Rollback())
	_, err = db.ExecContext(ctx, "b")
	require.NoError(t, err)
	require.Len(t, calls, 4)
	assert.Equal(t, []penstocksql.Op{"connect", "begin", "exec", "exec"}, []penstocksql.Op{calls[0].Op, calls[1].Op, calls[2].Op, calls[3].Op})
	assert.True(t, calls[2].InTransaction)
	assert.False(t, calls[3].InTransaction, "it has ended")
}

func TestStatementsAreAttributes(t *testing.T) {
	for key, want := range map[string]string{"op": "exec", "query": "DELETE FROM a", "unknown": ""} {
		seen, engine := record(t, key)
		_, err := open(t, &fake{}, engine, withoutConnections()).ExecContext(t.Context(), "DELETE FROM a")
		require.NoError(t, err)
		got, _ := seen.LastCall().Attribute.Text()
		assert.Equal(t, want, got)
	}
	seen, engine := record(t, "query")
	_, err := open(t, &fake{}, engine, withoutConnections()).ExecContext(t.Context(), strings.Repeat("x", 100_000))
	require.NoError(t, err)
	got, _ := seen.LastCall().Attribute.Text()
	assert.Less(t, len(got), 1100, "it is bounded")
}

func TestConnectionsAreUnwrapped(t *testing.T) {
	db := open(t, &fake{}, newEngine(t, closed()), penstocksql.Options{
		Resource: func(context.Context, penstocksql.Call) string { return "" },
	})
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Raw(func(c any) error {
		assert.IsType(t, &fakeConn{}, penstocksql.Unwrap(c))
		return nil
	}))
	require.NoError(t, conn.Close())
	assert.Equal(t, 7, penstocksql.Unwrap(7))
	assert.IsType(t, &fake{}, db.Driver())
}

func TestPanicOfTheDriverCountsAsAFailure(t *testing.T) {
	seen, engine := record(t, "op")
	f := &fake{}
	f.fail = func(what string) error {
		if strings.HasPrefix(what, "conn.Exec") {
			panic("broken")
		}
		return nil
	}
	db := open(t, f, engine, withoutConnections())
	assert.PanicsWithValue(t, "broken", func() { _, _ = db.ExecContext(t.Context(), "exec") })
	assert.Equal(t, outcomes(failed), seen.Outcomes())
	assert.Zero(t, totals(engine, "sql:exec").InFlight)
}
