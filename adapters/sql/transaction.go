package penstocksql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// BeginTx begins a transaction. Its statements are calls of their own, and its end always
// passes.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	r, err := c.begin(ctx, Begin, "", nil)
	if err != nil {
		return nil, err
	}
	returned := false
	defer r.endIfPanicked(&returned)
	begun, err := c.beginTx(ctx, opts)
	returned = true
	c.end(r, err)
	if err != nil {
		return nil, err
	}
	c.inTx = true
	c.tx = tx{begun, c}
	return &c.tx, nil
}

// beginTx does what database/sql does.
func (c *conn) beginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if beginner, ok := c.Conn.(driver.ConnBeginTx); ok {
		return beginner.BeginTx(ctx, opts)
	}
	if opts.Isolation != driver.IsolationLevel(sql.LevelDefault) {
		return nil, errors.New("sql: driver does not support non-default isolation level")
	}
	if opts.ReadOnly {
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	begun, err := olderBeginner(c.Conn).Begin()
	if err == nil && isDone(ctx) {
		_ = begun.Rollback()
		return nil, ctx.Err()
	}
	return begun, err
}

// isDone says whether a context that can end has ended.
func isDone(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// Begin is BeginTx without a context.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// tx is a transaction. Its end always passes and is no call.
type tx struct {
	driver.Tx
	conn *conn
}

func (t *tx) Commit() error {
	t.conn.inTx = false
	return t.Tx.Commit()
}

func (t *tx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}
