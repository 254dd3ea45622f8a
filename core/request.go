package core

import (
	"context"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// request is a call that asks to enter, with what its options say. Attributes are left out:
// they are read from the options when a rule asks. The options are passed beside the request,
// because as a field of it they would escape to the heap.
type request struct {
	rule.Call // without an attribute

	name   string          // of the resource
	ctx    context.Context // from which an option reads attributes; nil if none does
	noWait bool

	recordedAt uint32 // where it is recorded that the call has passed; 0 for nowhere

	demotedBy *tally        // of the rule that has demoted the call; nil if none has, or once it is counted
	priority  rule.Priority // that the call came with, if one has
}

// init sets the fields in place: to copy a struct that was just written field by field
// costs 3 ns.
func (q *request) init(name string, now clock.Instant, tokens int32) {
	q.Now, q.Tokens, q.name = now, tokens, name
}

// read reads what the options say. If they are attributes, that is nothing.
func (q *request) read(ctx context.Context, opts []Option) {
	for i := range opts {
		switch o := &opts[i]; o.kind {
		case optionInbound:
			q.SetCaller(q.Priority(), true)
		case optionPriority:
			p, _ := o.value.Number()
			q.SetCaller(rule.Priority(p), q.Inbound()) // it was a Priority: the conversion loses nothing
		case optionNoWait:
			q.noWait = true
		case optionLongLived:
			q.SetLongLived()
		case optionContext:
			q.ctx = ctx
		}
	}
}

// with returns the call with an attribute, as limiters get it.
func (q *request) with(a rule.Attribute) rule.Call {
	call := q.Call
	call.Attribute = a
	return call
}

// attribute returns the attribute of a key of the call with these options.
func (q *request) attribute(opts []Option, key string) rule.Attribute {
	for i := len(opts) - 1; i >= 0; i-- {
		if o := &opts[i]; o.hasKey(key) {
			return o.value
		}
	}
	return q.attributeBeside(opts, key)
}

// attributeBeside returns the attribute of a key that no option has itself: the address in
// place of its prefix, or what the last Attributes option reads, or the origin.
func (q *request) attributeBeside(opts []Option, key string) rule.Attribute {
	last := -1
	for i := range opts {
		switch o := &opts[i]; {
		case key == rule.KeyIPPrefix && o.hasKey(rule.KeyIP):
			return q.attribute(opts, rule.KeyIP)
		case o.reads():
			last = i
		}
	}
	if last >= 0 {
		a := opts[last].read(q.ctx, key)
		if !a.IsSet() && key == rule.KeyIPPrefix {
			a = opts[last].read(q.ctx, rule.KeyIP)
		}
		if a.IsSet() {
			return a
		}
	}
	if key == rule.KeyOrigin {
		if origin := originOf(opts); origin != "" {
			return rule.String(origin)
		}
	}
	return rule.Attribute{}
}

func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// demote gives the call the lowest priority, and notes where that is counted.
func (q *request) demote(by *tally) {
	q.priority, q.demotedBy = q.Priority(), by
	q.SetCaller(rule.PrioritySheddable, q.Inbound())
}

// promote gives the call the priority that it came with.
func (q *request) promote() {
	if q.demotedBy != nil {
		q.SetCaller(q.priority, q.Inbound())
		q.demotedBy = nil
	}
}

// countDemotion counts the call as demoted, if it is, once it is decided.
func (q *request) countDemotion() {
	if q.demotedBy != nil {
		q.demotedBy.demoted.Add(1)
		q.demotedBy = nil
	}
}
