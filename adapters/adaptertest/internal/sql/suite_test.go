package penstocksql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/core"
)

// state is an error with an SQLSTATE.
type state string

func (s state) Error() string    { return "SQLSTATE " + string(s) }
func (s state) SQLState() string { return string(s) }

const (
	uniqueViolation    state = "23505"
	tooManyConnections state = "53300"
	internalError      state = "XX000"
)

// remote is a database that answers each statement as the suite says.
type remote struct{ reply func() adaptertest.Reply }

func (r remote) Connect(context.Context) (driver.Conn, error) { return remoteConn{reply: r.reply}, nil }
func (remote) Driver() driver.Driver                          { return nil }

type remoteConn struct {
	driver.Conn // which nobody asks
	reply       func() adaptertest.Reply
}

func (remoteConn) Close() error { return nil }

func (c remoteConn) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	switch c.reply() {
	case adaptertest.NotFoundReply:
		return nil, uniqueViolation
	case adaptertest.Broken:
		return nil, internalError
	case adaptertest.Rejected:
		return nil, tooManyConnections
	case adaptertest.Silent:
		<-ctx.Done()
	}
	return driver.RowsAffected(1), ctx.Err()
}

// TestConformance runs the suite for statements; opening connections is no call in it.
func TestConformance(t *testing.T) {
	adaptertest.Calls(t, adaptertest.CallsHarness{
		Resource: "sql:exec",
		Open: func(t *testing.T, c adaptertest.CallsClient) adaptertest.CallFunc {
			connector := driver.Connector(remote{c.Remote})
			for i := len(c.Guards) - 1; i >= 0; i-- {
				connector = penstocksql.WrapConnector(connector, c.Guards[i].Engine, suiteOptions(&c.Guards[i].Options))
			}
			db := sql.OpenDB(connector)
			t.Cleanup(func() { _ = db.Close() })
			return func(ctx context.Context) error {
				_, err := db.ExecContext(ctx, "exec")
				return err
			}
		},
		Lacks: map[adaptertest.Feature]string{
			adaptertest.RetryDelays:  "databases do not say when to come back",
			adaptertest.RetryBudgets: "a driver cannot tell retries from the statements of one transaction",
		},
	})
}

// suiteOptions returns options of the suite as those of the adapter.
func suiteOptions(o *adaptertest.CallsOptions) penstocksql.Options {
	options := withoutConnections()
	options.Throttle = o.Throttle
	options.Target = func(_ context.Context, c penstocksql.Call) string {
		if c.Op == penstocksql.Connect {
			return ""
		}
		return "database"
	}
	if resource := o.Resource; resource != nil {
		options.Resource = func(ctx context.Context, c penstocksql.Call) string {
			if c.Op == penstocksql.Connect {
				return ""
			}
			return resource(ctx)
		}
	}
	if tokens := o.Tokens; tokens != nil {
		options.Tokens = func(ctx context.Context, _ penstocksql.Call) int { return tokens(ctx) }
	}
	if attributes := o.Attributes; attributes != nil {
		options.Attributes = func(ctx context.Context, _ penstocksql.Call) []core.Option { return attributes(ctx) }
	}
	if failure := o.Failure; failure != nil {
		options.Failure = func(_ penstocksql.Call, err error) bool { return failure(err) }
	}
	return options
}
