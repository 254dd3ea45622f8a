package call

import (
	"context"
	"errors"
	"unsafe"

	"github.com/penstock-go/penstock/rule"
)

// Option says something about one call; core has the manual. The zero value says nothing.
type Option struct {
	_ [0]func() // not comparable

	// Four words, since callers write several for each call: with 80 bytes an option,
	// refusing a call that has four of them takes an eighth longer.
	key   unsafe.Pointer // to the bytes of a key, or a function that reads attributes
	kind  int            // the length of the key; negative if the option is no attribute
	value rule.Attribute // an attribute, a name, a number, or what the function reads
}

// Attribute returns an option that is an attribute.
func Attribute(key string, value rule.Attribute) Option {
	return Option{key: unsafe.Pointer(unsafe.StringData(key)), kind: len(key), value: value}
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

// Tokens makes the call take so many tokens.
func Tokens(n int) Option { return Option{kind: optionTokens, value: rule.Int(int64(n))} }

// Origin names who is calling.
func Origin(caller string) Option {
	return Option{kind: optionOrigin, value: rule.String(caller)}
}

// Inbound says that the call comes from outside.
func Inbound() Option { return Option{kind: optionInbound} }

// Priority says how important the call is.
func Priority(p rule.Priority) Option {
	return Option{kind: optionPriority, value: rule.Int(int64(p))}
}

// NoWait has the call refused where it would have to wait.
func NoWait() Option { return Option{kind: optionNoWait} }

// LongLived says that the call lasts as long as its caller wants.
func LongLived() Option { return Option{kind: optionLongLived} }

// Attributes returns an option that reads attributes of a call.
func Attributes[T any](read func(call *T, key string) rule.Attribute, call *T) Option {
	o := Option{kind: optionCall, key: *(*unsafe.Pointer)(unsafe.Pointer(&read))}
	*o.call() = unsafe.Pointer(call)
	return o
}

// ContextAttributes returns an option that reads attributes of a context.
func ContextAttributes(read func(ctx context.Context, key string) rule.Attribute) Option {
	return Option{kind: optionContext, key: *(*unsafe.Pointer)(unsafe.Pointer(&read))}
}

// hasKey says whether the option is an attribute with that key.
func (o *Option) hasKey(key string) bool {
	return o.kind == len(key) && *(*string)(unsafe.Pointer(&o.key)) == key // unsafe.String checks more: 1 ns
}

// AreAttributes says whether all options are attributes, as those of most calls are. It is short
// enough to be inlined.
func AreAttributes(opts []Option) bool {
	for i := range opts {
		if opts[i].kind < 0 {
			return false
		}
	}
	return true
}

// NameAttributes says whether an option names an attribute, or reads some.
func NameAttributes(opts []Option) bool {
	for i := range opts {
		if opts[i].kind > 0 || opts[i].reads() {
			return true
		}
	}
	return false
}

// call returns where an option has what its function reads: in place of an attribute, whose
// first word is a pointer, too.
func (o *Option) call() *unsafe.Pointer { return (*unsafe.Pointer)(unsafe.Pointer(&o.value)) }

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

// ErrInvalid is core.ErrInvalid.
var ErrInvalid = errors.New("penstock: invalid call")
