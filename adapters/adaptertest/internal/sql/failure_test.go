package penstocksql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// stateError is an error as those of the drivers for PostgreSQL.
type stateError string

func (e stateError) Error() string    { return "state " + string(e) }
func (e stateError) SQLState() string { return string(e) }

// mysqlError is an error as those of the driver for MySQL.
type mysqlError struct {
	Number   uint16
	SQLState [5]byte
}

func (e *mysqlError) Error() string { return fmt.Sprint("number ", e.Number) }

func TestErrorsAreJudgedByWhomTheyBlame(t *testing.T) {
	for _, test := range []struct {
		err    error
		failed bool
	}{
		{nil, false},
		{sql.ErrNoRows, false},
		{fmt.Errorf("find: %w", sql.ErrNoRows), false},
		{sql.ErrTxDone, false},
		{driver.ErrBadConn, true},
		{io.ErrUnexpectedEOF, true},
		{errors.New("anything"), true},
		{context.Canceled, false},
		{context.DeadlineExceeded, true},
		{&core.BlockError{}, false},
		{&core.BlockError{Reason: rule.Injected}, true},
		{stateError("08006"), true},
		{stateError("53300"), true},
		{stateError("57014"), true},
		{stateError("57P01"), true},
		{stateError("XX000"), true},
		{stateError("25006"), true},
		{stateError("25P02"), false},
		{stateError("23505"), false},
		{fmt.Errorf("insert: %w", stateError("23505")), false},
		{stateError("40001"), false},
		{stateError("42601"), false},
		{stateError("?"), true},
		{&mysqlError{1040, [5]byte([]byte("08004"))}, true},
		{&mysqlError{1205, [5]byte([]byte("HY000"))}, true},
		{&mysqlError{1062, [5]byte([]byte("23000"))}, false},
		{fmt.Errorf("insert: %w", &mysqlError{1062, [5]byte([]byte("23000"))}), false},
		{&mysqlError{}, true},
	} {
		assert.Equal(t, test.failed, penstocksql.IsFailure(test.err), "%v", test.err)
	}
}

func TestOutcomesOfCalls(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		cancel bool
		want   adaptertest.Outcome
	}{
		"well":                     {nil, false, succeeded},
		"broken":                   {io.ErrUnexpectedEOF, false, failed},
		"the statement's mistake":  {stateError("42601"), false, succeeded},
		"cancelled by its caller":  {context.Canceled, true, ignored},
		"broken after that":        {io.ErrUnexpectedEOF, true, ignored},
		"refused further down":     {&core.BlockError{}, false, ignored},
		"at its deadline":          {context.DeadlineExceeded, false, failed},
		"fault that was injected":  {&core.BlockError{Reason: rule.Injected}, false, failed},
		"cancelled by the program": {stateError("57014"), true, ignored},
	} {
		t.Run(name, func(t *testing.T) {
			seen, engine := record(t, "op")
			f := &fake{}
			db := open(t, f, engine, withoutConnections())
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f.fail = func(string) error {
				if test.cancel {
					cancel()
				}
				return test.err
			}
			_, err = conn.ExecContext(ctx, "exec")
			require.ErrorIs(t, err, test.err)
			f.fail = nil
			assert.Equal(t, outcomes(test.want), seen.Outcomes())
			require.NoError(t, conn.Close())
		})
	}
}

func TestOutcomesOfRows(t *testing.T) {
	for name, test := range map[string]struct {
		fail string // the call of the driver that fails
		read func(t *testing.T, rows *sql.Rows, cancel context.CancelFunc)
		want adaptertest.Outcome
	}{
		"read to the end": {"", func(t *testing.T, rows *sql.Rows, _ context.CancelFunc) {
			t.Helper()
			for rows.Next() || rows.NextResultSet() {
				continue
			}
			require.NoError(t, rows.Err())
		}, succeeded},
		"closed early": {"", func(*testing.T, *sql.Rows, context.CancelFunc) {}, succeeded},
		"broken while they are read": {"rows.Next", func(t *testing.T, rows *sql.Rows, _ context.CancelFunc) {
			t.Helper()
			assert.False(t, rows.Next())
			require.Error(t, rows.Err())
		}, failed},
		"broken between sets": {"rows.NextResultSet", func(t *testing.T, rows *sql.Rows, _ context.CancelFunc) {
			t.Helper()
			for rows.Next() {
				continue
			}
			assert.False(t, rows.NextResultSet())
			require.Error(t, rows.Err())
		}, failed},
		"broken when they are closed": {"rows.Close", func(*testing.T, *sql.Rows, context.CancelFunc) {}, failed},
		"cancelled while they are read": {"", func(t *testing.T, rows *sql.Rows, cancel context.CancelFunc) {
			t.Helper()
			assert.True(t, rows.Next())
			cancel() // database/sql closes the rows, and so does the test
		}, ignored},
	} {
		t.Run(name, func(t *testing.T) {
			seen, engine := record(t, "op")
			f := &fake{}
			f.fail = func(what string) error {
				if what == test.fail {
					return io.ErrUnexpectedEOF
				}
				return nil
			}
			db := open(t, f, engine, withoutConnections())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rows, err := db.QueryContext(ctx, "query")
			require.NoError(t, err)
			test.read(t, rows, cancel)
			_ = rows.Close()
			require.Eventually(t, func() bool { return len(seen.Outcomes()) == 1 }, eventTimeout, time.Millisecond)
			assert.Equal(t, outcomes(test.want), seen.Outcomes())
		})
	}
}

func TestRowsThatAreOpenAtTheDeadlineAreAFailure(t *testing.T) {
	seen, engine := record(t, "op")
	db := open(t, &fake{}, engine, withoutConnections())
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	rows, err := db.QueryContext(ctx, "query")
	if err != nil { // the deadline has come already
		t.Skip(err)
	}
	require.Eventually(t, func() bool { return len(seen.Outcomes()) == 1 }, eventTimeout, time.Millisecond)
	assert.Equal(t, outcomes(failed), seen.Outcomes())
	require.NoError(t, rows.Close())
}

func TestFailureDecides(t *testing.T) {
	seen, engine := record(t, "op")
	f := &fake{}
	unique := errors.New("UNIQUE constraint failed")
	options := withoutConnections()
	options.Failure = func(call penstocksql.Call, err error) bool {
		return call.Query == "exec" && !errors.Is(err, unique)
	}
	db := open(t, f, engine, options)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	for _, result := range []error{unique, io.EOF} {
		f.fail = func(string) error { return result }
		_, err = conn.ExecContext(t.Context(), "exec")
		require.ErrorIs(t, err, result)
	}
	f.fail = nil
	assert.Equal(t, outcomes(succeeded, failed), seen.Outcomes())
	require.NoError(t, conn.Close())
}

func TestConnectionThatCannotBeOpenedIsAFailure(t *testing.T) {
	seen, engine := record(t, "op")
	f := &fake{fail: func(string) error { return errors.New("connection refused") }}
	db := open(t, f, engine, penstocksql.Options{})
	require.ErrorContains(t, db.PingContext(t.Context()), "connection refused")
	assert.Equal(t, outcomes(failed), seen.Outcomes())
}
