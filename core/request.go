package core

import (
	"fmt"
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// request is a call that asks to enter, with what its options say. It has no other
// pointers than the options: nothing of it is kept, so that they stay on the caller's
// stack.
type request struct {
	now      clock.Instant
	tokens   int32
	priority rule.Priority
	inbound  bool
	noWait   bool
	opts     []Option
}

// newRequest returns a call that arrives at now.
func newRequest(now clock.Instant, tokens int32, opts []Option) (q request) {
	q.now, q.tokens, q.opts = now, tokens, opts
	for i := range opts {
		switch o := &opts[i]; o.kind {
		case optionInbound:
			q.inbound = true
		case optionPriority:
			q.priority = rule.Priority(min(max(o.number, int64(PrioritySheddable)), int64(PriorityCritical)))
		case optionNoWait:
			q.noWait = true
		}
	}
	return
}

// call returns what a limiter gets to know of the call, with an attribute.
func (q *request) call(a rule.Attribute) rule.Call {
	return rule.Call{Now: q.now, Tokens: q.tokens, Priority: q.priority, Inbound: q.inbound, Attribute: a}
}

// tokensOf returns how many tokens a call with these options takes. Most have none.
func tokensOf(opts []Option) (int32, error) {
	if len(opts) == 0 {
		return 1, nil
	}
	return tokensIn(opts)
}

func tokensIn(opts []Option) (int32, error) {
	tokens := int32(1)
	for i := range opts {
		if o := &opts[i]; o.kind == optionTokens {
			if o.number < 1 || o.number > math.MaxInt32 {
				return 0, fmt.Errorf("%w: Tokens(%d): must be from 1 to %d", ErrInvalid, o.number, math.MaxInt32)
			}
			tokens = int32(o.number)
		}
	}
	return tokens, nil
}

// originOf returns who is calling, "" if the caller did not say.
func originOf(opts []Option) string {
	origin := ""
	for i := range opts {
		if o := &opts[i]; o.kind == optionOrigin {
			origin = o.text
		}
	}
	return origin
}

// originKey is the key under which rules find the name of the caller.
const originKey = "origin"

// attribute returns the attribute of a key.
func (q *request) attribute(key string) rule.Attribute {
	source := -1
	for i := len(q.opts) - 1; i >= 0; i-- {
		switch o := &q.opts[i]; {
		case o.kind == optionSource:
			source = max(source, i)
		case o.key != key:
		case o.kind == optionString:
			return rule.String(o.text)
		case o.kind == optionInt:
			return rule.Int(o.number)
		case o.kind == optionBool:
			return rule.Bool(o.number == 1)
		}
	}
	if source >= 0 {
		if a := q.opts[source].source.Attribute(q.opts[source].call, key); a.IsSet() {
			return a
		}
	}
	if key == originKey {
		if origin := originOf(q.opts); origin != "" {
			return rule.String(origin)
		}
	}
	return rule.Attribute{}
}
