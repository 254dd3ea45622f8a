package penstocksql

import (
	"context"
	"database/sql/driver"
)

// stmt is a prepared statement.
type stmt struct {
	driver.Stmt
	conn    *conn
	query   string
	skipped *rows // the call that it was prepared for, until it is made
}

// convertingStmt is one that converts its arguments: database/sql could tell that from one that
// does not.
type convertingStmt struct {
	*stmt
	of columnConverter
}

// ColumnConverter returns what converts an argument.
func (s convertingStmt) ColumnConverter(index int) driver.ValueConverter {
	return s.of.ColumnConverter(index)
}

func newStmt(c *conn, of driver.Stmt, query string, skipped *rows) driver.Stmt {
	s := &stmt{of, c, query, skipped}
	if converter, ok := of.(columnConverter); ok {
		return convertingStmt{s, converter}
	}
	return s
}

// begin enters a call, unless that for which the statement was prepared has.
func (s *stmt) begin(ctx context.Context, op Op, args []driver.NamedValue) (*rows, error) {
	if r := s.skipped; r != nil {
		s.skipped = nil
		return r, nil
	}
	return s.conn.begin(ctx, op, s.query, args)
}

// ExecContext runs the statement without rows.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.begin(ctx, Exec, args)
	if err != nil {
		return nil, err
	}
	returned := false
	defer r.endIfPanicked(&returned)
	result, err := s.exec(ctx, args)
	returned = true
	s.conn.end(r, err)
	return result, err
}

func (s *stmt) exec(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if execer, ok := s.Stmt.(driver.StmtExecContext); ok {
		return execer.ExecContext(ctx, args)
	}
	list, err := values(ctx, args)
	if err != nil {
		return nil, err
	}
	return olderStmt(s.Stmt).Exec(list)
}

// QueryContext runs the statement as a query.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	r, err := s.begin(ctx, Query, args)
	if err != nil {
		return nil, err
	}
	returned := false
	defer r.endIfPanicked(&returned)
	r.Rows, err = s.queryRows(ctx, args)
	returned = true
	if err != nil {
		s.conn.end(r, err)
		return nil, err
	}
	s.conn.served = true
	return r, nil
}

func (s *stmt) queryRows(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if queryer, ok := s.Stmt.(driver.StmtQueryContext); ok {
		return queryer.QueryContext(ctx, args)
	}
	list, err := values(ctx, args)
	if err != nil {
		return nil, err
	}
	return olderStmt(s.Stmt).Query(list)
}

// Exec is ExecContext without a context.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

// Query is QueryContext without a context.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

func named(args []driver.Value) []driver.NamedValue {
	list := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		list[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return list
}

// CheckNamedValue leaves arguments to the connection if the driver's statements do not check
// them, as database/sql does.
func (s *stmt) CheckNamedValue(value *driver.NamedValue) error {
	if checker, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(value)
	}
	return s.conn.CheckNamedValue(value)
}

// Close closes the statement, and ends the call for which it was prepared if that was not made.
func (s *stmt) Close() error {
	if r := s.skipped; r != nil {
		s.skipped = nil
		r.void()
		r.free()
	}
	return s.Stmt.Close()
}
