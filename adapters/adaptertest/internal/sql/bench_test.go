package penstocksql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/core"
)

// quick is a driver that answers at once and allocates nothing.
type quick struct{}

func (q *quick) Connect(context.Context) (driver.Conn, error) { return q, nil }
func (q *quick) Driver() driver.Driver                        { return nil }
func (q *quick) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (q *quick) Close() error                                 { return nil }
func (q *quick) Begin() (driver.Tx, error)                    { return q, nil }
func (q *quick) Commit() error                                { return nil }
func (q *quick) Rollback() error                              { return nil }
func (q *quick) Ping(context.Context) error                   { return nil }
func (q *quick) Columns() []string                            { return nil }
func (q *quick) Next([]driver.Value) error                    { return io.EOF }

func (q *quick) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.ResultNoRows, nil
}

func (q *quick) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return q, nil
}

func (q *quick) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return q, nil }

// uses is what a program does with a database.
func uses(ctx context.Context, db *sql.DB) map[string]func() error {
	return map[string]func() error{
		"exec": func() error {
			_, err := db.ExecContext(ctx, "INSERT INTO a VALUES (1)")
			return err
		},
		"query": func() error {
			rows, err := db.QueryContext(ctx, "SELECT a FROM b")
			if err == nil {
				for rows.Next() {
					continue
				}
				err = rows.Err()
			}
			return err
		},
		"transaction": func() error {
			tx, err := db.BeginTx(ctx, nil)
			if err == nil {
				err = tx.Commit()
			}
			return err
		},
		"ping": func() error { return db.PingContext(ctx) },
	}
}

func quickDB(tb testing.TB, engine *core.Engine) *sql.DB {
	tb.Helper()
	connector := driver.Connector(&quick{})
	if engine != nil {
		connector = penstocksql.WrapConnector(connector, engine, penstocksql.Options{})
	}
	db := sql.OpenDB(connector)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// BenchmarkCalls shows what guarding adds to what database/sql does for a driver that answers
// at once.
func BenchmarkCalls(b *testing.B) {
	ctx := context.Background()
	run := func(name string, db *sql.DB) {
		for what, use := range uses(ctx, db) {
			b.Run(what+" "+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_ = use()
				}
			})
		}
	}
	run("unguarded", quickDB(b, nil))
	run("passed", quickDB(b, newEngine(b, limited("sql:exec", 1e9))))
	run("refused", quickDB(b, newEngine(b, limited("sql:exec", 0))))
}

func TestGuardingAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	bare, guarded := uses(ctx, quickDB(t, nil)), uses(ctx, quickDB(t, newEngine(t, limited("sql:exec", 1e9))))
	refused := uses(ctx, quickDB(t, newEngine(t, limited("sql:exec", 0))))
	for what, use := range guarded {
		require.NoError(t, use(), what)
		want := allocs(func() { _ = bare[what]() })
		assert.LessOrEqual(t, allocs(func() { _ = use() }), want, what)
		if what == "exec" {
			assert.LessOrEqual(t, allocs(func() { _ = refused[what]() }), want, "refused")
		}
	}
}

// allocs returns how often fn allocates. Package sql starts a goroutine for each transaction, which
// is let end each time: else the next one needs memory for a goroutine of its own.
func allocs(fn func()) float64 {
	return testing.AllocsPerRun(200, func() {
		fn()
		runtime.Gosched()
	})
}
