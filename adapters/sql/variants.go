package penstocksql

import (
	"context"
	"database/sql/driver"
)

// The methods of connections whose absence database/sql can tell from what they return: without
// one to run a statement at once, arguments are checked by the prepared statement alone; and a
// transaction whose context has ended keeps its connection only if that has both a ResetSession
// and an IsValid.
type (
	queryer struct{ c *conn }
	execer  struct{ c *conn }
)

// QueryContext runs a query.
func (q queryer) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return q.c.query(ctx, query, args)
}

// ExecContext runs a statement without rows.
func (e execer) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return e.c.exec(ctx, query, args)
}

// Connections that run statements at once.
type (
	queryConn struct {
		*conn
		queryer
	}
	execConn struct {
		*conn
		execer
	}
	fullConn struct {
		*conn
		queryer
		execer
	}
)

// session is what a connection has that can be reset and tell whether it is valid.
type session struct {
	driver.SessionResetter
	driver.Validator
}

// newConn returns a guarded connection. It has the methods that the one of the driver has, as
// far as database/sql can tell.
func newConn(g *gate, of driver.Conn) driver.Conn {
	c := &conn{Conn: of, gate: g}
	c.first.free()
	resetter, resets := of.(driver.SessionResetter)
	validator, validates := of.(driver.Validator)
	switch {
	case resets && validates:
		return newSessionConn(c, session{resetter, validator})
	case resets:
		return newResettingConn(c, resetter)
	case validates:
		return newValidatingConn(c, validator)
	}
	return newPlainConn(c)
}

// queries says whether a connection runs queries at once.
func queries(of driver.Conn) bool {
	_, without := of.(olderQueryer)
	_, with := of.(driver.QueryerContext)
	return with || without
}

// execs says whether a connection runs statements without rows at once.
func execs(of driver.Conn) bool {
	_, without := of.(olderExecer)
	_, with := of.(driver.ExecerContext)
	return with || without
}

func newPlainConn(c *conn) driver.Conn {
	switch q, e := queries(c.Conn), execs(c.Conn); {
	case q && e:
		return fullConn{c, queryer{c}, execer{c}}
	case q:
		return queryConn{c, queryer{c}}
	case e:
		return execConn{c, execer{c}}
	}
	return c
}

func newSessionConn(c *conn, s session) driver.Conn {
	switch plain := newPlainConn(c).(type) {
	case fullConn:
		return struct {
			fullConn
			session
		}{plain, s}
	case queryConn:
		return struct {
			queryConn
			session
		}{plain, s}
	case execConn:
		return struct {
			execConn
			session
		}{plain, s}
	}
	return struct {
		*conn
		session
	}{c, s}
}

func newResettingConn(c *conn, r driver.SessionResetter) driver.Conn {
	switch plain := newPlainConn(c).(type) {
	case fullConn:
		return struct {
			fullConn
			driver.SessionResetter
		}{plain, r}
	case queryConn:
		return struct {
			queryConn
			driver.SessionResetter
		}{plain, r}
	case execConn:
		return struct {
			execConn
			driver.SessionResetter
		}{plain, r}
	}
	return struct {
		*conn
		driver.SessionResetter
	}{c, r}
}

func newValidatingConn(c *conn, v driver.Validator) driver.Conn {
	switch plain := newPlainConn(c).(type) {
	case fullConn:
		return struct {
			fullConn
			driver.Validator
		}{plain, v}
	case queryConn:
		return struct {
			queryConn
			driver.Validator
		}{plain, v}
	case execConn:
		return struct {
			execConn
			driver.Validator
		}{plain, v}
	}
	return struct {
		*conn
		driver.Validator
	}{c, v}
}
