package sqltest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

// constraint is the code of SQLite for a violated constraint.
const constraint = 19

// isFailure is what a program with SQLite sets: its errors have no SQLSTATE.
func isFailure(_ penstocksql.Call, err error) bool {
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code()&0xff == constraint {
		return false
	}
	return penstocksql.IsFailure(err)
}

func newEngine(t *testing.T, set rules.Set) *core.Engine {
	t.Helper()
	engine := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(1_000_000, 0)), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(set))
	return engine
}

// open opens a database in a file, with a table.
func open(t *testing.T, engine *core.Engine) *sql.DB {
	t.Helper()
	dsn := "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "db")) + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)"
	db, err := penstocksql.Open("sqlite", dsn, engine, penstocksql.Options{Failure: isFailure})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	ctx := penstocksql.WithResource(t.Context(), "setup")
	_, err = db.ExecContext(ctx, "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)")
	require.NoError(t, err)
	return db
}

func totals(engine *core.Engine, resource string) stat.Totals {
	return engine.Resource(resource).Snapshot().Totals
}

func TestProgramWorksAsWithoutGuards(t *testing.T) {
	engine := newEngine(t, rules.Set{})
	db := open(t, engine)
	ctx := t.Context()
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	insert, err := tx.PrepareContext(ctx, "INSERT INTO users (name) VALUES (:name)")
	require.NoError(t, err)
	for i := range 10 {
		result, err := insert.ExecContext(ctx, sql.Named("name", fmt.Sprint("user ", i)))
		require.NoError(t, err)
		id, err := result.LastInsertId()
		require.NoError(t, err)
		assert.EqualValues(t, i+1, id)
	}
	require.NoError(t, insert.Close())
	require.NoError(t, tx.Commit())

	rows, err := db.QueryContext(ctx, "SELECT id, name FROM users WHERE id > ? ORDER BY id", 7)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	types, err := rows.ColumnTypes()
	require.NoError(t, err)
	assert.Equal(t, "INTEGER", types[0].DatabaseTypeName())
	var names []string
	for rows.Next() {
		var id int
		var name string
		require.NoError(t, rows.Scan(&id, &name))
		names = append(names, name)
	}
	require.NoError(t, rows.Err())
	assert.Equal(t, []string{"user 7", "user 8", "user 9"}, names)
	for resource, calls := range map[string]uint64{"sql:begin": 1, "sql:prepare": 1, "sql:exec": 10, "sql:query": 1} {
		assert.Equal(t, calls, totals(engine, resource).Completed, resource)
		assert.Zero(t, totals(engine, resource).Failed, resource)
		assert.Zero(t, totals(engine, resource).InFlight, resource)
	}

	tx, err = db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, "DELETE FROM users")
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	var count int
	require.NoError(t, db.QueryRowContext(ctx, "SELECT count(*) FROM users").Scan(&count))
	assert.Equal(t, 10, count)
	require.ErrorIs(t, db.QueryRowContext(ctx, "SELECT id FROM users WHERE id = 77").Scan(&count), sql.ErrNoRows)
	assert.Zero(t, totals(engine, "sql:query").Failed)
}

func TestMistakesOfCallersAreNoFailures(t *testing.T) {
	engine := newEngine(t, rules.Set{})
	db := open(t, engine)
	for range 2 {
		_, _ = db.ExecContext(t.Context(), "INSERT INTO users (name) VALUES ('twin')")
	}
	got := totals(engine, "sql:exec")
	assert.EqualValues(t, 2, got.Completed)
	assert.Zero(t, got.Failed)
	_, err := db.ExecContext(t.Context(), "INSERT INTO nowhere VALUES (1)")
	require.ErrorContains(t, err, "no such table")
	assert.EqualValues(t, 1, totals(engine, "sql:exec").Failed, "other errors of SQLite are")
}

func TestLimitIsExactWithARealDatabase(t *testing.T) {
	engine := newEngine(t, rules.Set{Flow: []flow.Rule{{Name: "writes", Resource: "users:add", Limit: 20}}})
	db := open(t, engine)
	ctx := penstocksql.WithResource(t.Context(), "users:add")
	var done sync.WaitGroup
	for worker := range 4 {
		done.Go(func() {
			for i := range 10 {
				_, err := db.ExecContext(ctx, "INSERT INTO users (name) VALUES (?)", fmt.Sprint(worker, "/", i))
				if err != nil {
					assert.ErrorIs(t, err, core.ErrBlocked)
				}
			}
		})
	}
	done.Wait()
	var count int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM users").Scan(&count))
	assert.Equal(t, 20, count)
	assert.EqualValues(t, 20, totals(engine, "users:add").Blocked)
}

func TestOpenRowsHoldTheirPlace(t *testing.T) {
	one := isolation.Rule{Name: "one", Resource: "sql:query", Limit: 1}
	db := open(t, newEngine(t, rules.Set{Isolation: []isolation.Rule{one}}))
	rows, err := db.QueryContext(t.Context(), "SELECT 1 UNION SELECT 2")
	require.NoError(t, err)
	assert.True(t, rows.Next())
	_, err = db.QueryContext(t.Context(), "SELECT 1") //nolint:sqlclosecheck,rowserrcheck // there are none
	require.ErrorIs(t, err, core.ErrBlocked)
	require.NoError(t, rows.Close())
	var n int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT 1").Scan(&n))
}

func TestCancelledQueryIsNeitherAFailureNorASuccess(t *testing.T) {
	engine := newEngine(t, rules.Set{})
	db := open(t, engine)
	ctx, cancel := context.WithCancel(t.Context())
	endless := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
	rows, err := db.QueryContext(ctx, endless)
	require.NoError(t, err)
	assert.True(t, rows.Next())
	cancel()
	require.Eventually(t, func() bool { return totals(engine, "sql:query").InFlight == 0 }, time.Minute, time.Millisecond)
	require.ErrorIs(t, rows.Err(), context.Canceled)
	require.NoError(t, rows.Close())
	assert.Zero(t, totals(engine, "sql:query").Failed)
}
