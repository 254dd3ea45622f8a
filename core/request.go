package core

import (
	"fmt"
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// request is a call that asks to enter, with what its options say but for attributes. The
// options themselves are passed beside it: as a part of it they would be on the heap.
type request struct {
	rule.Call // without an attribute

	name   string // of the resource
	noWait bool
}

// init sets all fields in place: to copy a struct that was just written field by field
// costs 3 ns.
func (q *request) init(name string, now clock.Instant, tokens int32, opts []Option) {
	q.Now, q.Tokens, q.name = now, tokens, name
	for i := range opts {
		switch o := &opts[i]; o.kind {
		case optionInbound:
			q.SetCaller(q.Priority(), true)
		case optionPriority:
			q.SetCaller(rule.Priority(o.number), q.Inbound()) // of a Priority: it is not cut off
		case optionNoWait:
			q.noWait = true
		}
	}
}

// with returns what a limiter gets to know of the call, with an attribute.
func (q *request) with(a rule.Attribute) rule.Call {
	call := q.Call
	call.Attribute = a
	return call
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
			origin, _ = o.value.Text()
		}
	}
	return origin
}

// attributeOf returns the attribute of a key.
func attributeOf(opts []Option, key string) rule.Attribute {
	source, alias := -1, key
	if key == rule.KeyIPPrefix {
		alias = rule.KeyIP
	}
	for i := len(opts) - 1; i >= 0; i-- {
		switch o := &opts[i]; {
		case o.kind == optionAttribute && (o.key == key || o.key == alias):
			return o.value
		case o.kind == optionSource:
			source = max(source, i)
		}
	}
	return attributeBeside(opts, source, key, alias)
}

// attributeBeside returns an attribute that no option names: from a source, which is the
// option of that index or -1, or the name of the caller.
func attributeBeside(opts []Option, source int, key, alias string) rule.Attribute {
	if source >= 0 {
		of := &opts[source]
		a := of.source.Attribute(of.call, key)
		if !a.IsSet() && alias != key {
			a = of.source.Attribute(of.call, alias)
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
