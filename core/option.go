package core

import (
	"fmt"
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Option says something about one call to Entry. Options are plain values:
// making and passing them allocates nothing.
type Option struct {
	kind   optionKind
	number int64
	key    string
	text   string
}

type optionKind uint8

const (
	optionTokens optionKind = iota + 1
	optionOrigin
	optionInbound
	optionPriority
	optionNoWait
	optionString
	optionInt
)

// Tokens makes the call take n tokens, at least 1, instead of one.
func Tokens(n int) Option { return Option{kind: optionTokens, number: int64(n)} }

// Origin names who is calling, for rules that are for the calls of one caller.
func Origin(caller string) Option { return Option{kind: optionOrigin, text: caller} }

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

// NoWait has the call refused where it would have to wait; RetryAfter tells how long.
func NoWait() Option { return Option{kind: optionNoWait} }

// String names an attribute of the call, such as a user, that rules can look at. The
// last of several of the same key counts, be it a String or an [Int].
func String(key, value string) Option { return Option{kind: optionString, key: key, text: value} }

// Int names an attribute of the call that is a number. To rules, 7 and "7" differ.
func Int(key string, value int64) Option { return Option{kind: optionInt, key: key, number: value} }

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

func isNoWait(opts []Option) bool {
	for i := range opts {
		if opts[i].kind == optionNoWait {
			return true
		}
	}
	return false
}

// setCall sets what rules get to know of a call, but for its attributes. It sets the
// fields in place: to copy a struct that was just written field by field costs 3 ns.
func setCall(call *rule.Call, now clock.Instant, tokens int32, opts []Option) {
	call.Now, call.Tokens = now, tokens
	if len(opts) > 0 {
		setOptions(call, opts)
	}
}

func setOptions(call *rule.Call, opts []Option) {
	for i := range opts {
		switch o := &opts[i]; o.kind {
		case optionInbound:
			call.Inbound = true
		case optionPriority:
			call.Priority = rule.Priority(min(max(o.number, int64(PrioritySheddable)), int64(PriorityCritical)))
		}
	}
}

// attributeOf returns the attribute of a key.
func attributeOf(opts []Option, key string) rule.Attribute {
	for i := len(opts) - 1; i >= 0; i-- {
		switch o := &opts[i]; {
		case o.key != key:
		case o.kind == optionString:
			return rule.String(o.text)
		case o.kind == optionInt:
			return rule.Int(o.number)
		}
	}
	return rule.Attribute{}
}
