package penstocksql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"

	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func Example() {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "reports", Resource: "reports:yearly", Limit: 0}}}); err != nil {
		panic(err)
	}

	connector := database{} // stands for the connector of a real driver
	db := sql.OpenDB(penstocksql.WrapConnector(connector, engine, penstocksql.Options{}))
	defer func() { _ = db.Close() }()

	ctx := context.Background()
	var orders int
	fmt.Println(db.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&orders))

	ctx = penstocksql.WithResource(ctx, "reports:yearly")
	err := db.QueryRowContext(ctx, "SELECT sum(total) FROM orders").Scan(&orders)
	fmt.Println(errors.Is(err, core.ErrBlocked), err)
	// Output:
	// <nil>
	// true penstock: "reports:yearly" blocked by flow "reports", cannot pass under the present rules
}

// database has one row for every query.
type database struct{}

func (d database) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (database) Driver() driver.Driver                          { return nil }
func (database) Prepare(string) (driver.Stmt, error)            { return nil, driver.ErrSkip }
func (database) Close() error                                   { return nil }
func (database) Begin() (driver.Tx, error)                      { return nil, driver.ErrSkip }

func (database) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &oneRow{}, nil
}

// oneRow is what a query returns.
type oneRow struct{ read bool }

func (*oneRow) Columns() []string { return []string{"count"} }
func (*oneRow) Close() error      { return nil }

func (r *oneRow) Next(values []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, values[0] = true, int64(7)
	return nil
}
