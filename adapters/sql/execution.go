package penstocksql

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// gate is what all connections of a database use: the engine and the options.
type gate struct {
	engine  *core.Engine
	options Options
}

// execution is one call.
type execution struct {
	gate  *gate
	guard core.Guard // the zero Guard if the call is not guarded
	ctx   context.Context
	call  Call

	asked  outgoing.Call   // the zero Call if no throttle was asked
	answer outgoing.Answer // for the throttle
}

// begin enters the call. It returns the error for the caller, who must not make it then.
func (x *execution) begin(ctx context.Context, g *gate, call Call) error {
	x.gate, x.ctx, x.call = g, ctx, call
	if isRelease(call.Query) {
		return nil
	}
	if g.options.Throttle != nil {
		if err := x.ask(); err != nil {
			return err
		}
	}
	if err := x.enter(); err != nil {
		x.endAsking()
		return err
	}
	return nil
}

// enter enters the call, if it is one of a resource.
func (x *execution) enter() (err error) {
	g, ctx, call := x.gate, x.ctx, x.call
	resource := x.resource()
	if resource == "" {
		return nil
	}
	var few [5]core.Option
	opts := append(few[:0], core.Attributes(attributeOf, &x.call))
	if p, _ := core.PriorityFromContext(ctx); p != rule.PriorityNormal {
		opts = append(opts, core.Priority(p))
	}
	if g.options.Tokens != nil {
		opts = append(opts, core.Tokens(g.options.Tokens(ctx, call)))
	}
	if g.options.Attributes != nil {
		opts = append(opts, g.options.Attributes(ctx, call)...)
	}
	x.guard, err = g.engine.Entry(ctx, resource, opts...)
	return err
}

// resource returns the name of the resource of the call.
func (x *execution) resource() string {
	if x.call.Op == Query || x.call.Op == Exec {
		if name, ok := x.ctx.Value(resourceKey{}).(string); ok {
			return name
		}
	}
	if x.gate.options.Resource != nil {
		return x.gate.options.Resource(x.ctx, x.call)
	}
	return x.call.Op.resource()
}

// end ends the call with err.
func (x *execution) end(err error) {
	defer x.exit() // also if Failure panics
	if err != nil && core.Canceled(x.ctx) && !errors.Is(err, core.ErrBlocked) {
		err = context.Canceled
	}
	x.answered(err)
	if err == nil {
		return
	}
	outgoing.MarkOutcome(&x.guard, x.gate.isFailure(x.call, err), err)
}

// void ends a call that has not been made: it takes no tokens, and its end says nothing.
func (x *execution) void() {
	x.guard.Settle(0)
	x.guard.MarkIgnored()
	x.exit()
}

// exit ends the call and lets go of what the caller has.
func (x *execution) exit() {
	x.guard.Exit()
	x.endAsking()
	x.ctx, x.call = nil, Call{}
}

func (g *gate) isFailure(call Call, err error) bool {
	if g.options.Failure != nil {
		return g.options.Failure(call, err)
	}
	return IsFailure(err)
}

// attributeOf reads an attribute of a call.
func attributeOf(call *Call, key string) rule.Attribute {
	switch key {
	case "op":
		return rule.String(string(call.Op))
	case "query":
		if call.Query != "" {
			return attribute.Text(call.Query)
		}
	}
	return rule.Attribute{}
}

// errUnsupportedNames is the error of database/sql for drivers without named arguments.
var errUnsupportedNames = errors.New("sql: driver does not support the use of Named Parameters")

// values returns arguments for drivers that know neither names nor contexts.
func values(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	list := make([]driver.Value, len(args))
	for i, arg := range args {
		if arg.Name != "" {
			return nil, errUnsupportedNames
		}
		list[i] = arg.Value
	}
	return list, ctx.Err()
}
