package penstocksql

import (
	"context"
	"database/sql/driver"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
)

// Op is what a call asks of a database.
type Op string

const (
	// Connect opens a connection.
	Connect Op = "connect"

	// Query runs a statement that returns rows. The call lasts until the rows are closed.
	Query Op = "query"

	// Exec runs a statement that returns no rows.
	Exec Op = "exec"

	// Begin begins a transaction. The call lasts until it has begun.
	Begin Op = "begin"

	// Prepare prepares a statement.
	Prepare Op = "prepare"

	// Ping asks whether a connection works.
	Ping Op = "ping"
)

// resource returns the name of the resource of calls that nothing else names.
func (o Op) resource() string {
	switch o {
	case Connect:
		return "sql:connect"
	case Query:
		return "sql:query"
	case Exec:
		return "sql:exec"
	case Begin:
		return "sql:begin"
	case Prepare:
		return "sql:prepare"
	case Ping:
		return "sql:ping"
	}
	return "sql:" + string(o)
}

// Call is a call of a database, as options see it.
type Call struct {
	Op            Op
	Query         string              // the text of the statement; "" if there is none
	Args          []driver.NamedValue // of the statement; read only, and not after the function returns
	InTransaction bool                // that was begun by Begin
}

// Options configure how calls are guarded. The zero value is ready to use. The functions must
// be safe for concurrent use.
type Options struct {
	// Resource returns the name of the resource of a call, or "" if the call is not to be
	// guarded. It must not make names of texts that are put together at run time. It is not
	// asked for statements whose context has a name: see [WithResource]. Defaults to "sql:" and
	// the Op: "sql:query".
	Resource func(ctx context.Context, call Call) string

	// Tokens returns how many tokens a call takes from its rules, at least 1. Fewer are an
	// error. Defaults to 1 for every call.
	Tokens func(ctx context.Context, call Call) int

	// Attributes returns attributes of your own that rules may look at, made by
	// [core.String], [core.Int] and [core.Bool], and other options of the call, such as
	// [core.Priority] and [core.NoWait]. They go before those of the call with the same key:
	// see the package documentation. Defaults to nothing.
	Attributes func(ctx context.Context, call Call) []core.Option

	// Failure returns whether a call that ended with err, never nil, counts as failed. err is
	// [context.Canceled] if the caller had cancelled the call before it ended, and
	// [context.DeadlineExceeded] if its deadline closed its rows. A call that did not fail does
	// not count as a success either if err is context.Canceled or a refusal, [core.IsRefusal]. A
	// panic always counts. Defaults to [IsFailure] of err.
	Failure func(call Call, err error) bool

	// Throttle refuses calls of a database that rejects most of them: see
	// [github.com/penstock-go/penstock/adapters/outgoing]. A call that it refuses does not
	// reach the driver and is no call of its resource; its error is an [*outgoing.Error].
	// Defaults to none.
	Throttle *outgoing.Throttle

	// Target returns what Throttle knows a database by, or "" if it is not to look at a call.
	// Set it if several databases share one Throttle. Defaults to "sql".
	Target func(ctx context.Context, call Call) string

	// Answer returns what the end of a call with err, which may be nil, says of the database,
	// for Throttle. err is as in Failure. It is not asked about calls that database/sql makes
	// anew on another connection, nor after a panic. Defaults to [Answer].
	Answer func(call Call, err error) outgoing.Answer
}

type resourceKey struct{}

// WithResource returns a context whose statements, queries and execs, are calls of the resource
// of that name; "" if they are not to be guarded. It does not name the connections that are
// opened and the statements that are prepared for them, nor transactions. There must not be more
// names than a program can list: do not put values into them.
//
//	rows, err := db.QueryContext(penstocksql.WithResource(ctx, "orders:list"), query)
func WithResource(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, resourceKey{}, name)
}
