package penstocksql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// Open is [sql.Open] for a database whose calls are guarded. The engine nil stands for
// [penstock.Default].
func Open(driverName, dataSourceName string, engine *core.Engine, options Options) (*sql.DB, error) {
	db, err := sql.Open(driverName, dataSourceName)
	if err != nil {
		return nil, err
	}
	of := db.Driver()
	if err := db.Close(); err != nil {
		return nil, err
	}
	connector, err := newGuarded(of, engine, options).OpenConnector(dataSourceName)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// WrapConnector returns a connector whose connections are guarded, for [sql.OpenDB]. Its Driver
// is the one that is wrapped. The engine nil stands for [penstock.Default].
func WrapConnector(of driver.Connector, engine *core.Engine, options Options) driver.Connector {
	return &connector{of, newGate(engine, options)}
}

// WrapDriver returns a driver whose connections are guarded, for [sql.Register]. The engine nil
// stands for [penstock.Default].
func WrapDriver(of driver.Driver, engine *core.Engine, options Options) driver.Driver {
	return newGuarded(of, engine, options)
}

func newGate(engine *core.Engine, options Options) *gate {
	if engine == nil {
		engine = penstock.Default()
	}
	return &gate{engine, options}
}

// guarded is a driver.
type guarded struct {
	driver.Driver
	gate *gate
}

func newGuarded(of driver.Driver, engine *core.Engine, options Options) *guarded {
	return &guarded{of, newGate(engine, options)}
}

// Open opens a connection.
func (g *guarded) Open(name string) (driver.Conn, error) {
	return (&connector{&dsn{g.Driver, name}, g.gate}).Connect(context.Background())
}

// OpenConnector returns what opens connections.
func (g *guarded) OpenConnector(name string) (driver.Connector, error) {
	with, ok := g.Driver.(driver.DriverContext)
	if !ok {
		return &connector{&dsn{g.Driver, name}, g.gate}, nil
	}
	of, err := with.OpenConnector(name)
	if err != nil {
		return nil, err
	}
	return &connector{of, g.gate}, nil
}

// dsn is the connector of drivers that have none.
type dsn struct {
	driver driver.Driver
	name   string
}

func (d *dsn) Connect(context.Context) (driver.Conn, error) { return d.driver.Open(d.name) }

func (d *dsn) Driver() driver.Driver { return d.driver }

// connector opens guarded connections.
type connector struct {
	driver.Connector
	gate *gate
}

// Connect opens a connection, which is a call.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	var x execution
	if err := x.begin(ctx, c.gate, Call{Op: Connect}); err != nil {
		return nil, err
	}
	returned := false
	defer func() {
		if !returned {
			x.guard.MarkFailed()
			x.exit()
		}
	}()
	opened, err := c.Connector.Connect(ctx)
	returned = true
	x.end(err)
	if err != nil {
		return nil, err
	}
	return newConn(c.gate, opened), nil
}

// Close closes the connector if the driver's can be closed.
func (c *connector) Close() error {
	if closer, ok := c.Connector.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
