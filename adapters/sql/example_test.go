package penstocksql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

	connector := plainConnector{&fake{}} // stands for that of a real driver
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
