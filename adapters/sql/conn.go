package penstocksql

import (
	"context"
	"database/sql/driver"
	"errors"
)

// conn is a connection. Its methods are those that database/sql cannot tell from missing ones
// by what they return; those that it can, types in variants.go add if the driver has them. As
// with every connection of a driver, one goroutine uses it at a time.
type conn struct {
	driver.Conn
	gate *gate

	first   rows  // of the one call that most connections have at a time: nothing is allocated
	skipped *rows // a call that passed and that database/sql makes by a prepared statement next
	tx      tx
	inTx    bool
	served  bool // the connection has worked
}

// take returns a place for a call.
func (c *conn) take() *rows {
	if c.first.conn == nil {
		c.first.conn = c
		return &c.first
	}
	return &rows{conn: c}
}

// begin enters a call, or goes on with the one that database/sql makes by a prepared statement.
func (c *conn) begin(ctx context.Context, op Op, query string, args []driver.NamedValue) (*rows, error) {
	c.voidSkipped()
	r := c.take()
	if err := r.begin(ctx, c.gate, Call{op, query, args, c.inTx}); err != nil {
		r.free()
		return nil, err
	}
	return r, nil
}

// end ends a call with err. database/sql makes one that met a connection which was closed
// meanwhile anew on another connection.
func (c *conn) end(r *rows, err error) {
	bad := errors.Is(err, driver.ErrBadConn)
	if bad && c.served && !c.inTx {
		r.void()
	} else {
		c.served = c.served || !bad
		r.end(err)
	}
	r.free()
}

// voidSkipped ends a call that was left to a prepared statement and not made.
func (c *conn) voidSkipped() {
	if r := c.skipped; r != nil {
		c.skipped = nil
		r.void()
		r.free()
	}
}

// exec is ExecContext of connections whose driver has it, or Exec.
func (c *conn) exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.begin(ctx, Exec, query, args)
	if err != nil {
		return nil, err
	}
	returned := false
	defer r.endIfPanicked(&returned)
	var result driver.Result
	if execer, ok := c.Conn.(driver.ExecerContext); ok {
		result, err = execer.ExecContext(ctx, query, args)
	} else {
		var list []driver.Value
		if list, err = values(ctx, args); err == nil {
			result, err = c.Conn.(olderExecer).Exec(query, list)
		}
	}
	returned = true
	if err == driver.ErrSkip { //nolint:errorlint // as database/sql
		c.skipped = r
		return nil, err
	}
	c.end(r, err)
	return result, err
}

// query is QueryContext of connections whose driver has it, or Query.
func (c *conn) query(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := c.begin(ctx, Query, query, args)
	if err != nil {
		return nil, err
	}
	returned := false
	defer r.endIfPanicked(&returned)
	if queryer, ok := c.Conn.(driver.QueryerContext); ok {
		r.Rows, err = queryer.QueryContext(ctx, query, args)
	} else {
		var list []driver.Value
		if list, err = values(ctx, args); err == nil {
			r.Rows, err = c.Conn.(olderQueryer).Query(query, list)
		}
	}
	returned = true
	switch {
	case err == driver.ErrSkip: //nolint:errorlint // as database/sql
		c.skipped = r
		return nil, err
	case err != nil:
		c.end(r, err)
		return nil, err
	}
	c.served = true
	return r, nil
}

// PrepareContext prepares a statement. That is a call, unless it is part of a statement that
// the driver has asked database/sql to prepare.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if skipped := c.skipped; skipped != nil && skipped.call.Query == query {
		c.skipped = nil
		statement, err := c.prepare(ctx, skipped, query)
		if err != nil {
			c.end(skipped, err)
			return nil, err
		}
		return newStmt(c, statement, query, skipped), nil
	}
	r, err := c.begin(ctx, Prepare, query, nil)
	if err != nil {
		return nil, err
	}
	statement, err := c.prepare(ctx, r, query)
	c.end(r, err)
	if err != nil {
		return nil, err
	}
	return newStmt(c, statement, query, nil), nil
}

func (c *conn) prepare(ctx context.Context, r *rows, query string) (driver.Stmt, error) {
	returned := false
	defer r.endIfPanicked(&returned)
	preparer, ok := c.Conn.(driver.ConnPrepareContext)
	if ok {
		statement, err := preparer.PrepareContext(ctx, query)
		returned = true
		return statement, err
	}
	statement, err := c.Conn.Prepare(query)
	if err == nil && isDone(ctx) {
		_ = statement.Close()
		statement, err = nil, ctx.Err()
	}
	returned = true
	return statement, err
}

// Prepare is PrepareContext without a context.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// Ping is a call if the driver has a Ping.
func (c *conn) Ping(ctx context.Context) error {
	pinger, ok := c.Conn.(driver.Pinger)
	if !ok {
		return nil
	}
	r, err := c.begin(ctx, Ping, "", nil)
	if err != nil {
		return err
	}
	returned := false
	defer r.endIfPanicked(&returned)
	err = pinger.Ping(ctx)
	returned = true
	c.end(r, err)
	return err
}

// CheckNamedValue leaves arguments to database/sql if the driver does not check them.
func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(value)
	}
	return driver.ErrSkip
}

// Close closes the connection.
func (c *conn) Close() error {
	c.voidSkipped()
	return c.Conn.Close()
}

// unwrap returns the connection of the driver.
func (c *conn) unwrap() driver.Conn { return c.Conn }

// Unwrap returns the connection of the driver of one that [sql.Conn.Raw] hands to its function;
// any other value as it is:
//
//	err := conn.Raw(func(c any) error {
//		return penstocksql.Unwrap(c).(*stdlib.Conn).Conn().Ping(ctx)
//	})
//
// What is done with it is not guarded.
func Unwrap(driverConn any) any {
	if wrapped, ok := driverConn.(interface{ unwrap() driver.Conn }); ok {
		return wrapped.unwrap()
	}
	return driverConn
}
