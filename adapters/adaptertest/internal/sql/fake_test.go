package penstocksql_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"reflect"
	"sync"
)

// fake is a driver that records what it is asked.
type fake struct {
	conn func(*fakeConn) driver.Conn // which optional interfaces its connections have
	stmt func(*fakeStmt) driver.Stmt
	rows func(*fakeRows) driver.Rows
	fail func(what string) error // how calls end; nil: all end well

	mu    sync.Mutex
	trace []string
	conns int
}

func (f *fake) record(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = append(f.trace, what)
	if f.fail != nil {
		return f.fail(what)
	}
	return nil
}

// traced returns what was asked of the driver.
func (f *fake) traced() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.trace...)
}

func (f *fake) Open(name string) (driver.Conn, error) {
	if err := f.record("open %s", name); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.conns++
	c := &fakeConn{f: f, id: f.conns}
	f.mu.Unlock()
	if f.conn == nil {
		return c, nil
	}
	return f.conn(c), nil
}

// fakeConn has all optional interfaces.
type fakeConn struct {
	f  *fake
	id int
}

func (c *fakeConn) newStmt(query string) driver.Stmt {
	s := &fakeStmt{c.f, query}
	if c.f.stmt == nil {
		return s
	}
	return c.f.stmt(s)
}

func (f *fake) newRows() driver.Rows {
	r := &fakeRows{f: f}
	if f.rows == nil {
		return r
	}
	return f.rows(r)
}

func (c *fakeConn) Prepare(query string) (driver.Stmt, error) {
	if err := c.f.record("conn.Prepare %s", query); err != nil {
		return nil, err
	}
	return c.newStmt(query), nil
}

func (c *fakeConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	if err := c.f.record("conn.PrepareContext %s", query); err != nil {
		return nil, err
	}
	return c.newStmt(query), nil
}

func (c *fakeConn) Close() error { return c.f.record("conn.Close") }

func (c *fakeConn) Begin() (driver.Tx, error) {
	return fakeTx{c.f}, c.f.record("conn.Begin")
}

func (c *fakeConn) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return fakeTx{c.f}, c.f.record("conn.BeginTx %v", opts)
}

func (c *fakeConn) Ping(context.Context) error { return c.f.record("conn.Ping") }

func (c *fakeConn) Exec(query string, args []driver.Value) (driver.Result, error) {
	return driver.RowsAffected(1), c.f.record("conn.Exec %s %v", query, args)
}

func (c *fakeConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.f.record("conn.ExecContext %s %v", query, args)
}

func (c *fakeConn) Query(query string, args []driver.Value) (driver.Rows, error) {
	return c.f.newRows(), c.f.record("conn.Query %s %v", query, args)
}

func (c *fakeConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.f.newRows(), c.f.record("conn.QueryContext %s %v", query, args)
}

func (c *fakeConn) ResetSession(context.Context) error { return c.f.record("conn.ResetSession") }

func (c *fakeConn) IsValid() bool { return c.f.record("conn.IsValid") == nil }

func (c *fakeConn) CheckNamedValue(v *driver.NamedValue) error {
	if err := c.f.record("conn.CheckNamedValue %v", v.Value); err != nil {
		return err
	}
	return checked(v)
}

// checked accepts texts and a type of its own, and leaves all else to the next.
func checked(v *driver.NamedValue) error {
	switch v.Value.(type) {
	case []int:
		v.Value = "a list"
		return nil
	case string:
		return nil
	}
	return driver.ErrSkip
}

type fakeTx struct{ f *fake }

func (t fakeTx) Commit() error   { return t.f.record("tx.Commit") }
func (t fakeTx) Rollback() error { return t.f.record("tx.Rollback") }

// fakeStmt has all optional interfaces.
type fakeStmt struct {
	f     *fake
	query string
}

func (s *fakeStmt) Close() error  { return s.f.record("stmt.Close") }
func (s *fakeStmt) NumInput() int { return -1 }

func (s *fakeStmt) Exec(args []driver.Value) (driver.Result, error) {
	return driver.RowsAffected(1), s.f.record("stmt.Exec %s %v", s.query, args)
}

func (s *fakeStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), s.f.record("stmt.ExecContext %s %v", s.query, args)
}

func (s *fakeStmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.f.newRows(), s.f.record("stmt.Query %s %v", s.query, args)
}

func (s *fakeStmt) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.f.newRows(), s.f.record("stmt.QueryContext %s %v", s.query, args)
}

func (s *fakeStmt) CheckNamedValue(v *driver.NamedValue) error {
	if err := s.f.record("stmt.CheckNamedValue %v", v.Value); err != nil {
		return err
	}
	return checked(v)
}

func (s *fakeStmt) ColumnConverter(index int) driver.ValueConverter {
	_ = s.f.record("stmt.ColumnConverter %d", index)
	return converter{}
}

// converter takes whatever there is.
type converter struct{}

func (converter) ConvertValue(v any) (driver.Value, error) {
	return fmt.Sprintf("converted %v", v), nil
}

// fakeRows are two sets of a row each, and have all optional interfaces.
type fakeRows struct {
	f    *fake
	sets int
	read bool
}

func (r *fakeRows) Columns() []string { return []string{"a"} }
func (r *fakeRows) Close() error      { return r.f.record("rows.Close") }

func (r *fakeRows) Next(dest []driver.Value) error {
	if err := r.f.record("rows.Next"); err != nil {
		return err
	}
	if r.read {
		return io.EOF
	}
	r.read, dest[0] = true, int64(r.sets)
	return nil
}

func (r *fakeRows) HasNextResultSet() bool { return r.sets == 0 }

func (r *fakeRows) NextResultSet() error {
	if err := r.f.record("rows.NextResultSet"); err != nil {
		return err
	}
	if r.sets > 0 {
		return io.EOF
	}
	r.sets, r.read = 1, false
	return nil
}

func (r *fakeRows) ColumnTypeScanType(int) reflect.Type                { return reflect.TypeFor[int64]() }
func (r *fakeRows) ColumnTypeDatabaseTypeName(int) string              { return "NUMBER" }
func (r *fakeRows) ColumnTypeLength(int) (int64, bool)                 { return 7, true }
func (r *fakeRows) ColumnTypeNullable(int) (nullable, ok bool)         { return true, true }
func (r *fakeRows) ColumnTypePrecisionScale(int) (p, s int64, ok bool) { return 5, 2, true }
