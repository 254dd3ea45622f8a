package call

import (
	"context"
	"fmt"
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/rule"
)

// Request is a call that asks to enter, with what its options say. Attributes are left out:
// they are read from the options when a rule asks. The options are passed beside the request,
// because as a field of it they would escape to the heap.
type Request struct {
	rule.Call // without an attribute

	Name    string          // of the resource
	Origin  string          // who is calling; "" if the caller did not say
	Context context.Context // from which an option reads attributes; nil if none does
	NoWait  bool

	RecordedAt uint32 // where it is recorded that the call has passed; 0 for nowhere

	DemotedBy *Tally        // of the rule that has demoted the call; nil if none has, or once it is counted
	priority  rule.Priority // that the call came with, if one has
}

// Init sets the fields of a call whose options are attributes, in place: to copy a struct that was just written
// field by field costs 3 ns.
func (q *Request) Init(name string, now clock.Instant) {
	q.Now, q.Tokens, q.Name = now, 1, name
}

// Read is Init for any options. The error, of a number of tokens that no call can take, matches [ErrInvalid].
func (q *Request) Read(ctx context.Context, name string, now clock.Instant, opts []Option) error {
	q.Init(name, now)
	for i := range opts {
		switch o := &opts[i]; o.kind {
		case optionTokens:
			number, _ := o.value.Number()
			if number < 1 || number > math.MaxInt32 {
				return fmt.Errorf("%w: Tokens(%d): must be from 1 to %d", ErrInvalid, number, math.MaxInt32)
			}
			q.Tokens = int32(number)
		case optionOrigin:
			q.Origin, _ = o.value.Text()
		case optionInbound:
			q.SetCaller(q.Priority(), true)
		case optionPriority:
			p, _ := o.value.Number()
			q.SetCaller(rule.Priority(p), q.Inbound()) // it was a Priority: the conversion loses nothing
		case optionNoWait:
			q.NoWait = true
		case optionLongLived:
			q.SetLongLived()
		case optionContext:
			q.Context = ctx
		}
	}
	return nil
}

// With returns the call with an attribute, as limiters get it.
func (q *Request) With(a rule.Attribute) rule.Call {
	call := q.Call
	call.Attribute = a
	return call
}

// Attribute returns the attribute of a key of the call with these options.
func (q *Request) Attribute(opts []Option, key string) rule.Attribute {
	for i := len(opts) - 1; i >= 0; i-- {
		if o := &opts[i]; o.hasKey(key) {
			return o.value
		}
	}
	return q.attributeBeside(opts, key)
}

// attributeBeside returns the attribute of a key that no option has itself: the address in
// place of its prefix, or what the last Attributes option reads, or the origin.
func (q *Request) attributeBeside(opts []Option, key string) rule.Attribute {
	last := -1
	for i := range opts {
		switch o := &opts[i]; {
		case key == rule.KeyIPPrefix && o.hasKey(rule.KeyIP):
			return q.Attribute(opts, rule.KeyIP)
		case o.reads():
			last = i
		}
	}
	if last >= 0 {
		a := opts[last].read(q.Context, key)
		if !a.IsSet() && key == rule.KeyIPPrefix {
			a = opts[last].read(q.Context, rule.KeyIP)
		}
		if a.IsSet() {
			return a
		}
	}
	if key == rule.KeyOrigin && q.Origin != "" {
		return rule.String(q.Origin)
	}
	return rule.Attribute{}
}

// OrBackground returns the context, or one that never ends in place of nil.
func OrBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// demote gives the call the lowest priority, and notes where that is counted.
func (q *Request) demote(by *Tally) {
	q.priority, q.DemotedBy = q.Priority(), by
	q.SetCaller(rule.PrioritySheddable, q.Inbound())
}

// Promote gives the call the priority that it came with.
func (q *Request) Promote() {
	if q.DemotedBy != nil {
		q.SetCaller(q.priority, q.Inbound())
		q.DemotedBy = nil
	}
}

// CountDemotion counts the call as demoted, if it is, once it is decided.
func (q *Request) CountDemotion() {
	if q.DemotedBy != nil {
		q.DemotedBy.Demoted.Add(1)
		q.DemotedBy = nil
	}
}

// RecordedFlags returns what options say that a recording has as flags.
func (q *Request) RecordedFlags() (flags recorder.Flags) {
	if q.Inbound() {
		flags |= recorder.Inbound
	}
	if q.NoWait {
		flags |= recorder.NoWait
	}
	if q.LongLived() {
		flags |= recorder.LongLived
	}
	return flags
}
