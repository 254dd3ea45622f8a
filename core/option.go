package core

import (
	"context"

	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/rule"
)

// Tokens makes the call take n tokens, at least 1, instead of one.
func Tokens(n int) Option { return call.Tokens(n) }

// CallTokens returns how many tokens a call with these options takes; 0 if Entry would refuse it
// for that number.
func CallTokens(opts ...Option) int {
	var q call.Request
	if err := q.Read(context.Background(), "", 0, opts); err != nil {
		return 0
	}
	return int(q.Tokens)
}

// Origin names who is calling, for rules that are for the calls of one caller.
func Origin(caller string) Option { return call.Origin(caller) }

// Inbound says that the call comes from outside, rather than going out to
// another service.
func Inbound() Option { return call.Inbound() }

// Priority says how important the call is, for rules that refuse what matters least
// first. Calls that do not say have [rule.PriorityNormal].
func Priority(p rule.Priority) Option { return call.Priority(p) }

// NoWait has the call refused where it would have to wait; RetryAfter tells how long. A
// delay that a rule injects is no such wait: the call has it. Nor is the answer of a backend
// that a rule asks for each call.
func NoWait() Option { return call.NoWait() }

// LongLived says that the call lasts as long as its caller wants, as a watch, a stream of events
// or a download does. How long it lasts is then no response time, and rules that look at response
// times do not look at it; the kinds of rules say what else they do about such calls. If that is
// known only once the call has entered, use [Guard.MarkLongLived].
func LongLived() Option { return call.LongLived() }

// String names an attribute of the call, such as a user, that rules can look at. The
// last of several of the same key counts, be it a String, an [Int] or a [Bool].
func String(key, value string) Option {
	return call.Attribute(key, rule.String(value))
}

// Int names an attribute of the call that is a number. To rules, 7 and "7" differ.
func Int(key string, value int64) Option {
	return call.Attribute(key, rule.Int(value))
}

// Bool names an attribute of the call that is true or false. To rules, true and "true"
// differ.
func Bool(key string, value bool) Option {
	return call.Attribute(key, rule.Bool(value))
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
func Attributes[T any](read func(call *T, key string) rule.Attribute, from *T) Option {
	return call.Attributes(read, from)
}

// ContextAttributes is [Attributes] for attributes that read finds in the context that the
// call enters with, such as the metadata of a gRPC call. [Engine.Explain], which has no
// context, finds none. Of several options of both kinds the last one counts.
func ContextAttributes(read func(ctx context.Context, key string) rule.Attribute) Option {
	return call.ContextAttributes(read)
}

// Option says something about one call to Entry. Options are plain values:
// making and passing them allocates nothing. The zero value says nothing.
type Option = call.Option
