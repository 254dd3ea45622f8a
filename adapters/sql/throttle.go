package penstocksql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
)

// defaultTarget is what the database is called if nothing names it.
const defaultTarget = "sql"

// Answer returns what the end of a call says of the database:
//
//   - an error with an SQLSTATE of class 08 (connection) or 53 (resources, such as too many
//     connections), or 57P01 to 57P03 (it shuts down or starts up), is [outgoing.Rejected];
//   - so is an error without SQLSTATE of a connection that breaks or times out, such as
//     [driver.ErrBadConn], that of a deadline that has passed, and any with which a connection
//     cannot be opened: the database is overloaded, cannot be reached or does not answer in time;
//   - calls that their caller has cancelled, or that a guard further down refused, are
//     [outgoing.Ignored];
//   - every other end is [outgoing.Accepted]: whether statements succeed is the business of
//     breakers.
//
// Databases do not say when to come back.
func Answer(call Call, err error) outgoing.Answer {
	switch {
	case err == nil:
		return outgoing.Answer{Result: outgoing.Accepted}
	case !errors.Is(err, context.DeadlineExceeded) && outgoing.IsInconclusive(err):
		return outgoing.Answer{}
	case rejects(call.Op, err):
		return outgoing.Answer{Result: outgoing.Rejected}
	}
	return outgoing.Answer{Result: outgoing.Accepted}
}

// rejects says whether an error means that the database has turned the call away, or could
// not be reached.
func rejects(op Op, err error) bool {
	if state, ok := stateOf(err); ok {
		switch state {
		case "57P01", "57P02", "57P03":
			return true
		}
		return state[:2] == "08" || state[:2] == "53"
	}
	var broken net.Error
	return op == Connect || errors.As(err, &broken) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// ask asks the throttle for the call. It returns the error for the caller, who must not make
// it then.
func (x *execution) ask() (err error) {
	o, target := &x.gate.options, defaultTarget
	if o.Target != nil {
		target = o.Target(x.ctx, x.call)
	}
	if target == "" {
		return nil
	}
	p, _ := core.PriorityFromContext(x.ctx)
	x.asked, err = outgoing.Begin(x.ctx, o.Throttle, nil, target, p)
	return err
}

// answered notes what the end of the call says of the database.
func (x *execution) answered(err error) {
	switch o := &x.gate.options; {
	case o.Throttle == nil:
	case o.Answer != nil:
		x.answer = o.Answer(x.call, err)
	default:
		x.answer = Answer(x.call, err)
	}
}

// endAsking tells the throttle what answered has noted; nothing if the call was not made.
func (x *execution) endAsking() {
	x.asked.End(x.answer)
	x.asked, x.answer = outgoing.Call{}, outgoing.Answer{}
}
