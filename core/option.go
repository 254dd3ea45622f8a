package core

import (
	"github.com/penstock-go/penstock/rule"
)

// Option says something about one call to Entry. Options are plain values:
// making and passing them allocates nothing.
type Option struct {
	kind   optionKind
	number int64
	key    string
	value  rule.Attribute
	source rule.AttributeSource
	call   any // that the source reads
}

type optionKind uint8

const (
	optionTokens optionKind = iota + 1
	optionOrigin
	optionInbound
	optionPriority
	optionNoWait
	optionAttribute
	optionSource
)

// Tokens makes the call take n tokens, at least 1, instead of one.
func Tokens(n int) Option { return Option{kind: optionTokens, number: int64(n)} }

// Origin names who is calling, for rules that are for the calls of one caller.
func Origin(caller string) Option { return Option{kind: optionOrigin, value: rule.String(caller)} }

// Inbound says that the call comes from outside, rather than going out to
// another service.
func Inbound() Option { return Option{kind: optionInbound} }

// Priority says how important the call is, for rules that refuse what matters least
// first. Calls that do not say have [PriorityNormal].
func Priority(p rule.Priority) Option { return Option{kind: optionPriority, number: int64(p)} }

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

// String names an attribute of the call, such as a user, that rules can look at. The
// last of several of the same key counts, be it a String, an [Int] or a [Bool].
func String(key, value string) Option {
	return Option{kind: optionAttribute, key: key, value: rule.String(value)}
}

// Int names an attribute of the call that is a number. To rules, 7 and "7" differ.
func Int(key string, value int64) Option {
	return Option{kind: optionAttribute, key: key, value: rule.Int(value)}
}

// Bool names an attribute of the call that is true or false. To rules, true and "true"
// differ.
func Bool(key string, value bool) Option {
	return Option{kind: optionAttribute, key: key, value: rule.Bool(value)}
}

// Attributes gives the call all attributes that a source reads from it, such as the
// header fields of a request: only those that a rule in force asks for are read, and
// only while the call enters. Attributes that [String], [Int] or [Bool] name come before
// them. It is for adapters; of several the last one counts.
func Attributes(source rule.AttributeSource, call any) Option {
	return Option{kind: optionSource, source: source, call: call}
}
