package penstocksql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"

	"github.com/penstock-go/penstock/adapters/outgoing"
)

// IsFailure reports whether a call that ended with err failed because of the database or the
// network. An error with an SQLSTATE, as those of the drivers for PostgreSQL and MySQL have it,
// fails by its class: 08 (connection), 53 (resources), 57 (operator intervention, time-outs of
// statements), 58 and XX (system and internal errors), HY (general errors, as in MySQL), and
// 25006 (read only, as after a failover). All other classes, such as 22 (data), 23 (constraints),
// 40 (deadlocks and serialization) and 42 (syntax), blame the statement.
//
// Any other error is a failure, but for nil, [sql.ErrNoRows], [sql.ErrTxDone],
// [driver.ErrRemoveArgument], the cancellation by the caller, and a refusal of this process,
// [github.com/penstock-go/penstock/core.IsRefusal]. So with drivers whose errors have no SQLSTATE,
// such as those for SQLite, violated constraints are failures: set [Options.Failure].
func IsFailure(err error) bool {
	switch {
	case err == nil, errors.Is(err, sql.ErrNoRows), errors.Is(err, sql.ErrTxDone), errors.Is(err, driver.ErrRemoveArgument):
		return false
	case errors.Is(err, context.DeadlineExceeded):
		return true
	case outgoing.IsInconclusive(err):
		return false
	}
	if state, ok := stateOf(err); ok {
		return blamesDatabase(state)
	}
	return true
}

func blamesDatabase(state string) bool {
	switch state[:2] {
	case "08", "53", "57", "58", "XX", "HY":
		return true
	}
	return state == "25006"
}

// stateOf returns the SQLSTATE of an error: of its method SQLState, or its field.
func stateOf(err error) (state string, ok bool) {
	var with interface{ SQLState() string }
	if errors.As(err, &with) {
		state = with.SQLState()
		return state, len(state) == stateLength
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if state, ok := fieldOf(err); ok {
			return state, true
		}
	}
	return "", false
}

const stateLength = 5

// fieldOf returns the field SQLState of an error of five bytes, as the driver for MySQL has it.
func fieldOf(err error) (string, bool) {
	value := reflect.Indirect(reflect.ValueOf(err))
	if value.Kind() != reflect.Struct {
		return "", false
	}
	field := value.FieldByName("SQLState")
	if field.Kind() != reflect.Array || field.Len() != stateLength || field.Type().Elem().Kind() != reflect.Uint8 {
		return "", false
	}
	state := make([]byte, stateLength)
	reflect.Copy(reflect.ValueOf(state), field)
	return string(state), state[0] != 0
}
