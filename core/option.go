package core

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/penstock-go/penstock/rule"
)

// Option says something about one call to Entry. Options are plain values:
// making and passing them allocates nothing. The zero value says nothing.
type Option struct {
	_ [0]func() // not comparable

	// Four words, since callers write several for each call: with 80 bytes an option,
	// refusing a call that has four of them takes an eighth longer.
	key   unsafe.Pointer // to the bytes of a key, or a function that reads attributes
	kind  int            // the length of the key; negative if the option is no attribute
	value rule.Attribute // an attribute, a name, a number, or what the function reads
}

// The kinds of other options than attributes.
const (
	optionTokens = -1 - iota
	optionOrigin
	optionInbound
	optionPriority
	optionNoWait
	optionLongLived
	optionCall // this and the next one have functions that read attributes
	optionContext
)

// attributeOption returns an option that is an attribute.
func attributeOption(key string, value rule.Attribute) Option {
	return Option{key: unsafe.Pointer(unsafe.StringData(key)), kind: len(key), value: value}
}

// hasKey says whether the option is an attribute with that key.
func (o *Option) hasKey(key string) bool {
	return o.kind == len(key) && *(*string)(unsafe.Pointer(&o.key)) == key // unsafe.String checks more: 1 ns
}

// areAttributes says whether all options are attributes, as those of most calls are. It is short
// enough to be inlined.
func areAttributes(opts []Option) bool {
	for i := range opts {
		if opts[i].kind < 0 {
			return false
		}
	}
	return true
}

// Tokens makes the call take n tokens, at least 1, instead of one.
func Tokens(n int) Option { return Option{kind: optionTokens, value: rule.Int(int64(n))} }

// Origin names who is calling, for rules that are for the calls of one caller.
func Origin(caller string) Option { return Option{kind: optionOrigin, value: rule.String(caller)} }

// Inbound says that the call comes from outside, rather than going out to
// another service.
func Inbound() Option { return Option{kind: optionInbound} }

// Priority says how important the call is, for rules that refuse what matters least
// first. Calls that do not say have [PriorityNormal].
func Priority(p rule.Priority) Option {
	return Option{kind: optionPriority, value: rule.Int(int64(p))}
}

// The priorities, the most important first.
const (
	PriorityCritical  = rule.PriorityCritical
	PriorityHigh      = rule.PriorityHigh
	PriorityNormal    = rule.PriorityNormal
	PriorityLow       = rule.PriorityLow
	PrioritySheddable = rule.PrioritySheddable
)

// NoWait has the call refused where it would have to wait; RetryAfter tells how long. A
// delay that a rule injects is no such wait: the call has it. Nor is the answer of a backend
// that a rule asks for each call.
func NoWait() Option { return Option{kind: optionNoWait} }

// LongLived says that the call lasts as long as its caller wants, as a watch, a stream of events
// or a download does. How long it lasts is then no response time, and rules that look at response
// times do not look at it; the kinds of rules say what else they do about such calls. If that is
// known only once the call has entered, use [Guard.MarkLongLived].
func LongLived() Option { return Option{kind: optionLongLived} }

// String names an attribute of the call, such as a user, that rules can look at. The
// last of several of the same key counts, be it a String, an [Int] or a [Bool].
func String(key, value string) Option {
	return attributeOption(key, rule.String(value))
}

// Int names an attribute of the call that is a number. To rules, 7 and "7" differ.
func Int(key string, value int64) Option {
	return attributeOption(key, rule.Int(value))
}

// Bool names an attribute of the call that is true or false. To rules, true and "true"
// differ.
func Bool(key string, value bool) Option {
	return attributeOption(key, rule.Bool(value))
}

// Attributes gives the call all attributes that read finds in it, such as the header fields
// of a request: only those that a rule in force asks for are read, and only while the call
// enters. Attributes that [String], [Int] or [Bool] name come before them. It is for
// adapters; of several the last one counts.
//
// Read returns the attribute of a key, as rules spell it: "header:X-Tenant"; nothing if the
// call does not have it or the key is unknown. It must not be nil. It may be asked several
// times for one call, and only before the call has passed or was refused. Making a closure or
// a method value of it allocates: make it once and use it for all calls.
func Attributes[T any](read func(call *T, key string) rule.Attribute, call *T) Option {
	o := Option{kind: optionCall, key: *(*unsafe.Pointer)(unsafe.Pointer(&read))}
	*o.call() = unsafe.Pointer(call)
	return o
}

// call returns where an option has what its function reads: in place of an attribute, whose
// first word is a pointer, too.
func (o *Option) call() *unsafe.Pointer { return (*unsafe.Pointer)(unsafe.Pointer(&o.value)) }

// ContextAttributes is [Attributes] for attributes that read finds in the context that the
// call enters with, such as the metadata of a gRPC call. [Engine.Explain], which has no
// context, finds none. Of several options of both kinds the last one counts.
func ContextAttributes(read func(ctx context.Context, key string) rule.Attribute) Option {
	return Option{kind: optionContext, key: *(*unsafe.Pointer)(unsafe.Pointer(&read))}
}

// reads says whether the option has a function that reads attributes.
func (o *Option) reads() bool { return o.kind <= optionCall }

// read returns what the function of such an option finds. Functions that differ in the type
// of a pointer alone are called alike.
func (o *Option) read(ctx context.Context, key string) rule.Attribute {
	if o.kind == optionCall {
		return (*(*func(unsafe.Pointer, string) rule.Attribute)(unsafe.Pointer(&o.key)))(*o.call(), key)
	}
	if ctx == nil {
		return rule.Attribute{}
	}
	return (*(*func(context.Context, string) rule.Attribute)(unsafe.Pointer(&o.key)))(ctx, key)
}

// sizeOf returns how many tokens a call with these options takes, and whether it is long-lived.
func sizeOf(opts []Option) (tokens int32, longLived bool, err error) {
	tokens = 1
	for i := range opts {
		switch o := &opts[i]; o.kind {
		case optionTokens:
			number, _ := o.value.Number()
			if number < 1 || number > math.MaxInt32 {
				return 0, false, fmt.Errorf("%w: Tokens(%d): must be from 1 to %d", ErrInvalid, number, math.MaxInt32)
			}
			tokens = int32(number)
		case optionLongLived:
			longLived = true
		}
	}
	return tokens, longLived, nil
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
