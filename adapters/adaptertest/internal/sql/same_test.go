package penstocksql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/rules"
)

// variant is a driver with some of the optional interfaces.
type variant struct {
	name string
	conn func(*fakeConn) driver.Conn
	stmt func(*fakeStmt) driver.Stmt
	rows func(*fakeRows) driver.Rows
}

// The drivers that the wrapped one is compared with: with all optional interfaces, with none,
// and with one each.
func variants() []variant {
	list := []variant{{name: "all"}}
	bareConn := func(c *fakeConn) driver.Conn { return struct{ driver.Conn }{c} }
	bareStmt := func(s *fakeStmt) driver.Stmt { return struct{ driver.Stmt }{s} }
	bareRows := func(r *fakeRows) driver.Rows { return struct{ driver.Rows }{r} }
	for name, conn := range conns() {
		list = append(list, variant{name, conn, bareStmt, bareRows})
	}
	for name, stmt := range stmts() {
		list = append(list, variant{name, bareConn, stmt, bareRows}, variant{name + ", all of conn", nil, stmt, bareRows})
	}
	for name, rows := range rowsVariants() {
		list = append(list, variant{name, nil, bareStmt, rows})
	}
	return list
}

func conns() map[string]func(*fakeConn) driver.Conn {
	return map[string]func(*fakeConn) driver.Conn{
		"none": func(c *fakeConn) driver.Conn { return struct{ driver.Conn }{c} },
		"Pinger": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.Pinger
			}{c, c}
		},
		"Execer": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.Execer
			}{c, c}
		},
		"ExecerContext": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.ExecerContext
			}{c, c}
		},
		"Queryer": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.Queryer
			}{c, c}
		},
		"QueryerContext": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.QueryerContext
			}{c, c}
		},
		"ExecerContext and QueryerContext": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.ExecerContext
				driver.QueryerContext
			}{c, c, c}
		},
		"ConnPrepareContext": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.ConnPrepareContext
			}{c, c}
		},
		"ConnBeginTx": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.ConnBeginTx
			}{c, c}
		},
		"SessionResetter": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.SessionResetter
			}{c, c}
		},
		"Validator": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.Validator
			}{c, c}
		},
		"SessionResetter and Validator": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.SessionResetter
				driver.Validator
			}{c, c, c}
		},
		"NamedValueChecker": func(c *fakeConn) driver.Conn {
			return struct {
				driver.Conn
				driver.NamedValueChecker
			}{c, c}
		},
	}
}

func stmts() map[string]func(*fakeStmt) driver.Stmt {
	return map[string]func(*fakeStmt) driver.Stmt{
		"StmtExecContext": func(s *fakeStmt) driver.Stmt {
			return struct {
				driver.Stmt
				driver.StmtExecContext
			}{s, s}
		},
		"StmtQueryContext": func(s *fakeStmt) driver.Stmt {
			return struct {
				driver.Stmt
				driver.StmtQueryContext
			}{s, s}
		},
		"NamedValueChecker of Stmt": func(s *fakeStmt) driver.Stmt {
			return struct {
				driver.Stmt
				driver.NamedValueChecker
			}{s, s}
		},
		"ColumnConverter": func(s *fakeStmt) driver.Stmt {
			return struct {
				driver.Stmt
				converting
			}{s, converting{s}}
		},
		"ColumnConverter and NamedValueChecker": func(s *fakeStmt) driver.Stmt {
			return struct {
				driver.Stmt
				converting
				driver.NamedValueChecker
			}{s, converting{s}, s}
		},
	}
}

// converting has the method of a driver.ColumnConverter. Embedding that would hide it.
type converting struct{ s *fakeStmt }

func (c converting) ColumnConverter(index int) driver.ValueConverter {
	return c.s.ColumnConverter(index)
}

func rowsVariants() map[string]func(*fakeRows) driver.Rows {
	return map[string]func(*fakeRows) driver.Rows{
		"RowsNextResultSet": func(r *fakeRows) driver.Rows { return struct{ driver.RowsNextResultSet }{r} },
		"RowsColumnTypeScanType": func(r *fakeRows) driver.Rows {
			return struct{ driver.RowsColumnTypeScanType }{r}
		},
		"RowsColumnTypeDatabaseTypeName": func(r *fakeRows) driver.Rows {
			return struct {
				driver.RowsColumnTypeDatabaseTypeName
			}{r}
		},
		"RowsColumnTypeLength":   func(r *fakeRows) driver.Rows { return struct{ driver.RowsColumnTypeLength }{r} },
		"RowsColumnTypeNullable": func(r *fakeRows) driver.Rows { return struct{ driver.RowsColumnTypeNullable }{r} },
		"RowsColumnTypePrecisionScale": func(r *fakeRows) driver.Rows {
			return struct {
				driver.RowsColumnTypePrecisionScale
			}{r}
		},
	}
}

// TestProgramsCannotTellTheWrappedDriverFromTheDriver runs the same program with both, and
// compares what it gets and what the drivers are asked.
func TestProgramsCannotTellTheWrappedDriverFromTheDriver(t *testing.T) {
	used := map[string]bool{}
	for _, v := range variants() {
		for _, failing := range []string{"", "conn.", "stmt.", "rows.", "tx.", "conn.IsValid", "conn.ResetSession", "skip"} {
			t.Run(fmt.Sprintf("%s, %q fails", v.name, failing), func(t *testing.T) {
				plain, wrapped := newFake(v, failing), newFake(v, failing)
				want := program(t, sql.OpenDB(plainConnector{plain}))
				connector, err := penstocksql.WrapDriver(wrapped, newEngine(t, rules.Set{}), penstocksql.Options{}).(driver.DriverContext).OpenConnector("db")
				require.NoError(t, err)
				got := program(t, sql.OpenDB(connector))
				assert.Equal(t, want, got, "results")
				assert.Equal(t, plain.traced(), wrapped.traced(), "calls of the driver")
				for _, what := range wrapped.traced() {
					method, _, _ := strings.Cut(what, " ")
					used[method] = true
				}
			})
		}
	}
	for _, of := range []any{&fakeConn{}, &fakeStmt{}, fakeTx{}} {
		_, name, _ := strings.Cut(strings.ToLower(fmt.Sprintf("%T", of)), ".fake")
		for i := range reflect.TypeOf(of).NumMethod() {
			if method := reflect.TypeOf(of).Method(i).Name; method != "NumInput" {
				assert.True(t, used[name+"."+method], "no driver was asked for %s.%s", name, method)
			}
		}
	}
}

// plainConnector is what database/sql makes of a driver without connectors.
type plainConnector struct{ f *fake }

func (c plainConnector) Connect(context.Context) (driver.Conn, error) { return c.f.Open("db") }
func (c plainConnector) Driver() driver.Driver                        { return c.f }

// newFake returns a driver that fails every third of the calls that begin with failing.
func newFake(v variant, failing string) *fake {
	f := &fake{conn: v.conn, stmt: v.stmt, rows: v.rows}
	count := 0
	f.fail = func(what string) error {
		switch {
		case failing == "":
			return nil
		case failing == "skip":
			if len(what) > 9 && (what[:9] == "conn.Exec" || what[:9] == "conn.Quer") {
				return driver.ErrSkip
			}
			return nil
		case len(what) < len(failing) || what[:len(failing)] != failing || what == "conn.Close":
			return nil
		}
		if count++; count%3 != 0 {
			return nil
		}
		if count%2 == 0 {
			return driver.ErrBadConn
		}
		return errors.New("failed: " + what)
	}
	return f
}

// program uses everything of a database and returns what it gets.
func program(t *testing.T, db *sql.DB) (results []string) {
	t.Helper()
	db.SetMaxOpenConns(1)
	ctx := t.Context()
	note := func(format string, args ...any) { results = append(results, fmt.Sprintf(format, args...)) }
	note("ping %v", db.PingContext(ctx))
	for _, args := range [][]any{nil, {"a", 7}, {[]int{1}}, {sql.Named("n", 7)}, {struct{}{}}, {sql.NullInt64{}}} {
		result, err := db.ExecContext(ctx, "exec", args...)
		note("exec %v %v", result != nil, err)
		rows, err := db.QueryContext(ctx, "query", args...)
		note("query %v", err)
		noteRows(rows, note)
		prepared, err := db.PrepareContext(ctx, "prepared")
		note("prepare %v", err)
		if prepared == nil {
			continue
		}
		result, err = prepared.ExecContext(ctx, args...)
		note("prepared exec %v %v", result != nil, err)
		rows, err = prepared.QueryContext(ctx, args...)
		note("prepared query %v", err)
		noteRows(rows, note)
		note("close %v", prepared.Close())
	}
	for _, opts := range []*sql.TxOptions{nil, {Isolation: sql.LevelSerializable}, {ReadOnly: true}} {
		tx, err := db.BeginTx(ctx, opts)
		note("begin %v", err)
		if tx == nil {
			continue
		}
		_, err = tx.ExecContext(ctx, "exec in tx", 1)
		note("exec %v", err)
		var n int
		note("query %v %d", tx.QueryRowContext(ctx, "query in tx").Scan(&n), n)
		note("commit %v", tx.Commit())
	}
	noteCanceled(ctx, db, note)
	note("close %v", db.Close())
	return results
}

// noteCanceled has database/sql roll a transaction back whose context ends.
func noteCanceled(ctx context.Context, db *sql.DB, note func(string, ...any)) {
	canceled, cancel := context.WithCancel(ctx)
	tx, err := db.BeginTx(canceled, nil)
	note("begin %v", err)
	cancel()
	if tx == nil {
		return
	}
	_, err = db.ExecContext(ctx, "after the rollback") // waits for the one connection
	note("exec %v", err)
	_, err = db.ExecContext(canceled, "canceled")
	note("canceled %v", err)
}

func noteRows(rows *sql.Rows, note func(string, ...any)) {
	if rows == nil {
		return
	}
	defer func() { note("close %v, %v", rows.Close(), rows.Err()) }()
	types, err := rows.ColumnTypes()
	note("types %v", err)
	for _, column := range types {
		length, hasLength := column.Length()
		nullable, hasNullable := column.Nullable()
		precision, scale, hasScale := column.DecimalSize()
		note("%v %v %v %v %v %v %v %v %v", column.ScanType(), column.DatabaseTypeName(), length, hasLength,
			nullable, hasNullable, precision, scale, hasScale)
	}
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			var n any
			note("scan %v %v", rows.Scan(&n), n)
		}
		note("err %v", rows.Err())
	}
}

// TestInterfacesOfDriversAreAllKnown fails if a version of Go has an optional interface that
// this package does not keep.
func TestInterfacesOfDriversAreAllKnown(t *testing.T) {
	known := []string{
		"Driver", "DriverContext", "Connector", "Pinger", "Execer", "ExecerContext", "Queryer", "QueryerContext", "Conn",
		"ConnPrepareContext", "ConnBeginTx", "SessionResetter", "Validator", "Result", "Stmt", "StmtExecContext",
		"StmtQueryContext", "NamedValueChecker", "ColumnConverter", "Rows", "RowsNextResultSet", "RowsColumnTypeScanType",
		"RowsColumnTypeDatabaseTypeName", "RowsColumnTypeLength", "RowsColumnTypeNullable", "RowsColumnTypePrecisionScale", "Tx",
	}
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("SKIPPED, no source of the standard library: ", err)
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "database", "sql", "driver", "driver.go")
	syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	var found []string
	ast.Inspect(syntax, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if _, ok := spec.Type.(*ast.InterfaceType); ok {
				found = append(found, spec.Name.Name)
			}
		}
		return true
	})
	assert.ElementsMatch(t, known, found)
}
