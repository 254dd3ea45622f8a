// Package penstocksql guards the calls of databases that programs use by package database/sql.
// It wraps the driver:
//
//	db, err := penstocksql.Open("pgx", dsn, nil, penstocksql.Options{})
//
// or, where there is a connector, sql.OpenDB(penstocksql.WrapConnector(connector, nil, options)),
// or, where another library opens the database by the name of a driver,
//
//	sql.Register("guarded-pgx", penstocksql.WrapDriver(stdlib.GetDefaultDriver(), nil, options))
//
// A call that a rule refuses does not reach the driver. Its error is a [*core.BlockError], which
// database/sql returns as it is: it neither makes the call anew nor gives the connection up.
//
//	rows, err := db.QueryContext(ctx, "SELECT name FROM users")
//	if errors.Is(err, core.ErrBlocked) {
//		return cached, nil
//	}
//
// Everything else is as with the driver alone: database/sql cannot tell the difference,
// whichever optional interfaces the driver has. [Unwrap] returns the driver's connection where a
// program needs it. All functions are safe for concurrent use.
//
// # Resources
//
//   - sql:query: a query, also of a prepared statement. It lasts until its rows are closed, or
//     database/sql closes them: the database works on them, or at least keeps them, until then.
//   - sql:exec: a statement without rows, also a prepared one.
//   - sql:begin: the beginning of a transaction. It lasts until that has begun; the transaction
//     is no call, but its statements are. To limit transactions, guard the function that runs
//     one, or set sql.DB.SetMaxOpenConns.
//   - sql:prepare: preparing a statement. database/sql does that for each connection that a
//     sql.Stmt is used on, and for each statement if the driver cannot do without. Where the
//     driver decides so for one statement ([driver.ErrSkip]), that is a part of the one call.
//   - sql:connect: opening a connection. Here a breaker sees a database that is down.
//   - sql:ping: a ping, if the driver has one.
//
// [WithResource] gives statements a name of their own, such as "orders:list", and
// [Options.Resource] any call. A name is never made of the text of a statement.
//
// What gives back what a connection holds always passes and is no call: Commit and Rollback,
// closing rows, statements and connections, resetting a session, and statements that are nothing
// but a COMMIT, ROLLBACK, END, ABORT, RELEASE, UNLOCK, CLOSE or DEALLOCATE. A statement within a
// transaction may be refused; the program rolls back then, as after any error. The option
// Resource can let all of them pass: see [Call.InTransaction].
//
// Rules are asked when database/sql has a connection for the call. So waiting for a free
// connection is outside of calls, a call that waits for a rule holds its connection, and a new
// connection may be opened for a call that is then refused. A program that makes calls while it
// reads rows needs a place for both at once, as it does of SetMaxOpenConns.
//
// # Attributes and priorities
//
// Rules can look at these attributes, which are read only if a rule in force asks for them:
//
//   - op: connect, query, exec, begin, prepare or ping.
//   - query: the text of the statement; of more than 1024 bytes, see package
//     [github.com/penstock-go/penstock/adapters/attribute]. With it a hotParam rule limits each
//     statement by itself, in bounded memory.
//
// A call has the priority of its context, [core.ContextWithPriority].
//
// # Failures
//
// A call counts as failed if its error blames the database or the network: see [IsFailure]. A
// call that its caller cancelled is neither a failure nor a success; one whose deadline has come,
// also while its rows are read, is a failure.
//
// A connection may have been closed while it was idle. Its driver says so by
// [driver.ErrBadConn] before it has done anything, and database/sql makes the call anew on
// another. Each attempt is asked for as a call. Those that ended so count neither as a failure nor
// as a success and give back their tokens, but to a throttle; the statistics show them. On a
// connection that has never worked, and within a transaction, ErrBadConn is a failure.
//
// # Throttles
//
// With [Options.Throttle] a program sends fewer calls to a database that turns most of them away,
// because it has too many connections or no resources, or is down (see [Answer], and package
// [github.com/penstock-go/penstock/adapters/outgoing]). It is asked about each call by itself:
// opening a connection for a statement is one, the statement another. What always passes is not
// throttled either. It knows the database as "sql" unless [Options.Target] names it.
//
// There are no retry budgets here. A driver sees statements and not what a program tries again:
// a transaction that is retried, its beginning and all of its statements have the same context,
// so each statement would count as a retry of the one before. Ask the budget in the loop that
// retries, with outgoing.Begin:
//
//	ctx = outgoing.WithRetries(ctx)
//	for {
//		attempt, err := outgoing.Begin(ctx, nil, budgets, "orders", rule.PriorityNormal)
//		if err != nil {
//			return err // the budget is exhausted
//		}
//		err = transact(ctx, db)
//		attempt.End(outgoing.Answer{Result: outgoing.Accepted})
//		if !isSerializationFailure(err) {
//			return err
//		}
//	}
//
// # Costs
//
// Guarding a call allocates nothing if the driver runs statements without preparing them, and
// has one set of rows open on a connection at a time.
package penstocksql
