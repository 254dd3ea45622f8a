package penstocksql

import "database/sql/driver"

// What drivers have for calls without a context, and database/sql asks for. The interfaces of package
// driver for it are deprecated.
type (
	olderExecer interface {
		Exec(query string, args []driver.Value) (driver.Result, error)
	}
	olderQueryer interface {
		Query(query string, args []driver.Value) (driver.Rows, error)
	}

	olderStmt interface {
		Exec(args []driver.Value) (driver.Result, error)
		Query(args []driver.Value) (driver.Rows, error)
	}

	olderBeginner interface{ Begin() (driver.Tx, error) }

	columnConverter interface {
		ColumnConverter(index int) driver.ValueConverter
	}
)
