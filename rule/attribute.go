package rule

import (
	"strconv"
	"strings"
)

// Attribute is the value of one attribute of a call: a text, an integer, a boolean, or
// nothing when the call does not have it. It is composite for rules that ask for
// several keys at once.
type Attribute struct {
	text   string
	number int64
	parts  *[MaxKeys]Attribute
	kind   attributeKind
}

// MaxKeys is how many attributes a rule can ask for.
const MaxKeys = 4

// The keys of attributes that say where a call comes from.
const (
	// KeyOrigin is the key of the name of the caller. The engine has it from the option
	// Origin, unless the call has an attribute of that key.
	KeyOrigin = "origin"

	// KeyIP is the key of the address of the client.
	KeyIP = "ip"

	// KeyIPPrefix is the key of what identifies the client among others: an IPv4 address
	// or the network of an IPv6 address, which usually has 2^64 addresses to call from.
	// A call that has no such attribute has that of KeyIP in its place.
	KeyIPPrefix = "ipPrefix"
)

type attributeKind uint8

const (
	noAttribute attributeKind = iota
	textAttribute
	numberAttribute
	booleanAttribute
	compositeAttribute
)

// String returns an attribute with a text.
func String(text string) Attribute { return Attribute{text: text, kind: textAttribute} }

// Int returns an attribute with a number. It differs from the text of that number.
func Int(number int64) Attribute { return Attribute{number: number, kind: numberAttribute} }

// Bool returns an attribute that is true or false. It differs from the text "true" and
// from the number 1.
func Bool(value bool) Attribute {
	if value {
		return Attribute{number: 1, kind: booleanAttribute}
	}
	return Attribute{kind: booleanAttribute}
}

// Composite returns an attribute of several, in the order of the keys that a rule asks
// for; nothing when one of them is nothing. It refers to the parts, of which the first
// count matter.
func Composite(parts *[MaxKeys]Attribute, count int) Attribute {
	for i := range count {
		if !parts[i].IsSet() {
			return Attribute{}
		}
	}
	return Attribute{number: int64(count), parts: parts, kind: compositeAttribute}
}

// IsSet says whether the call has the attribute; of a composite one, whether it has all
// of its parts.
func (a Attribute) IsSet() bool { return a.kind != noAttribute }

// Text returns the text; false if the attribute is not a text.
func (a Attribute) Text() (string, bool) { return a.text, a.kind == textAttribute }

// Number returns the number; false if the attribute is not a number.
func (a Attribute) Number() (int64, bool) { return a.number, a.kind == numberAttribute }

// Boolean returns the boolean; isBoolean is false if the attribute is none.
func (a Attribute) Boolean() (value, isBoolean bool) {
	return a.number == 1, a.kind == booleanAttribute
}

// Parts returns the parts of a composite attribute, else nil. They are valid only while
// the limiter decides on the call, and must not be changed.
func (a Attribute) Parts() []Attribute {
	if a.kind != compositeAttribute {
		return nil
	}
	return a.parts[:a.number]
}

// String returns the attribute for people: the text as it is, 7, true, and the parts of
// a composite one with slashes between them. It allocates, except for a text.
func (a Attribute) String() string {
	switch a.kind {
	case textAttribute:
		return a.text
	case numberAttribute:
		return strconv.FormatInt(a.number, 10)
	case booleanAttribute:
		return strconv.FormatBool(a.number == 1)
	case compositeAttribute:
		var texts []string
		for _, part := range a.Parts() {
			texts = append(texts, part.String())
		}
		return strings.Join(texts, "/")
	}
	return ""
}

// AttributeSource reads attributes of calls when a rule asks for them, such as the
// header fields of requests. One source serves the calls of many goroutines at once.
type AttributeSource interface {
	// Attribute returns the attribute of a key, as rules spell it: "header:X-Tenant";
	// nothing if the call does not have it or the source does not know the key. The
	// call is what the engine was given together with the source. It may be asked
	// several times for one call, and only before the call has passed or was refused.
	Attribute(call any, key string) Attribute
}
