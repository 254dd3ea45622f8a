package core

import (
	"fmt"
	"math"
)

// Option says something about one call to Entry. Options are plain values:
// making and passing them allocates nothing.
type Option struct {
	kind   optionKind
	tokens int
	origin string
	args   []any
}

type optionKind uint8

const (
	optionTokens optionKind = iota + 1
	optionArgs
	optionOrigin
	optionInbound
)

// Tokens makes the call take n tokens, at least 1, instead of one.
func Tokens(n int) Option { return Option{kind: optionTokens, tokens: n} }

// Args hands the arguments of the call to the checks. They must be strings,
// booleans or numbers of the built-in types.
func Args(values ...any) Option { return Option{kind: optionArgs, args: values} }

// Origin names who is calling, for rules that are for the calls of one caller.
func Origin(caller string) Option { return Option{kind: optionOrigin, origin: caller} }

// Inbound says that the call comes from outside, rather than going out to
// another service.
func Inbound() Option { return Option{kind: optionInbound} }

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
			if o.tokens < 1 || o.tokens > math.MaxInt32 {
				return 0, fmt.Errorf("%w: Tokens(%d): must be from 1 to %d", ErrInvalid, o.tokens, math.MaxInt32)
			}
			tokens = int32(o.tokens)
		}
	}
	return tokens, nil
}

// originOf returns who is calling, "" if the caller did not say.
func originOf(opts []Option) string {
	origin := ""
	for i := range opts {
		if o := &opts[i]; o.kind == optionOrigin {
			origin = o.origin
		}
	}
	return origin
}
