package penstocksql

import (
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
)

// rows are the rows of a query, which is a call until they are closed; other calls use the
// place for a call only. They have all optional methods of rows: database/sql cannot tell them
// from missing ones by what they return.
type rows struct {
	driver.Rows
	execution
	conn *conn // nil while the place is free
	err  error // of the last reading; io.EOF at the end
}

// free gives the place to the next call. database/sql does not use rows after closing them.
func (r *rows) free() { r.Rows, r.conn, r.err = closedRows{}, nil, nil }

// endIfPanicked ends the call if the driver panicked.
func (r *rows) endIfPanicked(returned *bool) {
	if !*returned {
		r.guard.MarkFailed()
		r.exit()
		r.free()
	}
}

// Next reads a row.
func (r *rows) Next(dest []driver.Value) error {
	r.err = r.Rows.Next(dest)
	return r.err
}

// Close closes the rows and ends the call.
func (r *rows) Close() error {
	if r.conn == nil {
		return nil
	}
	returned := false
	defer r.endIfPanicked(&returned)
	err := r.Rows.Close()
	returned = true
	reason := r.err
	switch {
	case reason == nil && err == nil:
		reason = r.ctx.Err() // when it ends, database/sql closes the rows
	case reason == nil, errors.Is(reason, io.EOF):
		reason = err
	}
	r.end(reason)
	r.free()
	return err
}

// HasNextResultSet says whether there are more rows behind these.
func (r *rows) HasNextResultSet() bool {
	next, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && next.HasNextResultSet()
}

// NextResultSet goes on to them.
func (r *rows) NextResultSet() error {
	next, ok := r.Rows.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	r.err = next.NextResultSet()
	return r.err
}

// ColumnTypeScanType returns a type for the values of a column, any if the driver knows none.
func (r *rows) ColumnTypeScanType(index int) reflect.Type {
	if typed, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return typed.ColumnTypeScanType(index)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName returns the type of a column, "" if the driver knows none.
func (r *rows) ColumnTypeDatabaseTypeName(index int) string {
	if typed, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return typed.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

// ColumnTypeLength returns the length of a column.
func (r *rows) ColumnTypeLength(index int) (length int64, ok bool) {
	if typed, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return typed.ColumnTypeLength(index)
	}
	return 0, false
}

// ColumnTypeNullable returns whether a column may be null.
func (r *rows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if typed, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return typed.ColumnTypeNullable(index)
	}
	return false, false
}

// ColumnTypePrecisionScale returns the precision and scale of a column.
func (r *rows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if typed, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return typed.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}

// closedRows stand in for rows that are closed.
type closedRows struct{}

func (closedRows) Columns() []string         { return nil }
func (closedRows) Close() error              { return nil }
func (closedRows) Next([]driver.Value) error { return io.EOF }
