package rule

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Attribute is the value of one attribute of a call: a text, an integer, a boolean, or
// nothing when the call does not have it. It is composite for rules that ask for
// several keys at once. Two attributes are compared by [Attribute.Equal].
type Attribute struct {
	_ [0]func() // not by ==

	// Two words, so that a [Call] stays in registers: 10 ns a call. The pointer says what
	// the word is: with nil there is no attribute, with one of the kinds it is a number, a
	// boolean or the empty text. Any other pointer is to the bytes of a text, whose length
	// the word is, or to the parts of a composite attribute, and the word is compositeFlag
	// and their number.
	pointer unsafe.Pointer
	word    uint64
}

// kinds has addresses that no text and no composite attribute has. What is there is never
// read.
var kinds [3]byte //nolint:gochecknoglobals // only its address counts

const (
	numberKind = iota
	booleanKind
	emptyTextKind
)

const compositeFlag = 1 << 63

func kindPointer(kind int) unsafe.Pointer { return unsafe.Pointer(&kinds[kind]) }

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

// String returns an attribute with a text.
func String(text string) Attribute {
	if text == "" {
		return Attribute{pointer: kindPointer(emptyTextKind)}
	}
	return Attribute{pointer: unsafe.Pointer(unsafe.StringData(text)), word: uint64(len(text))}
}

// Int returns an attribute with a number. It differs from the text of that number.
func Int(number int64) Attribute {
	return Attribute{pointer: kindPointer(numberKind), word: uint64(number)}
}

// Bool returns an attribute that is true or false. It differs from the text "true" and
// from the number 1.
func Bool(value bool) Attribute {
	a := Attribute{pointer: kindPointer(booleanKind)}
	if value {
		a.word = 1
	}
	return a
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
	return Attribute{pointer: unsafe.Pointer(parts), word: compositeFlag | uint64(count)}
}

// IsSet says whether the call has the attribute; of a composite one, whether it has all
// of its parts.
func (a Attribute) IsSet() bool { return a.pointer != nil }

// hasKind says whether the pointer is one of the kinds.
func (a Attribute) hasKind() bool {
	return uintptr(a.pointer)-uintptr(unsafe.Pointer(&kinds)) < unsafe.Sizeof(kinds)
}

// Text returns the text; false if the attribute is not a text.
func (a Attribute) Text() (string, bool) {
	switch {
	case a.hasKind():
		return "", a.pointer == kindPointer(emptyTextKind)
	case a.pointer == nil || a.word >= compositeFlag:
		return "", false
	}
	return unsafe.String((*byte)(a.pointer), int(a.word)), true
}

// Number returns the number; false if the attribute is not a number.
func (a Attribute) Number() (int64, bool) {
	if a.pointer != kindPointer(numberKind) {
		return 0, false
	}
	return int64(a.word), true
}

// Boolean returns the boolean; isBoolean is false if the attribute is none.
func (a Attribute) Boolean() (value, isBoolean bool) {
	isBoolean = a.pointer == kindPointer(booleanKind)
	return isBoolean && a.word == 1, isBoolean
}

// Parts returns the parts of a composite attribute, else nil. They are valid only while
// the limiter decides on the call, and must not be changed.
func (a Attribute) Parts() []Attribute {
	if a.pointer == nil || a.word < compositeFlag || a.hasKind() {
		return nil
	}
	return (*[MaxKeys]Attribute)(a.pointer)[:a.word&^compositeFlag]
}

// Equal says whether two attributes have the same type and the same value. The number 7 and
// the text "7" differ.
func (a Attribute) Equal(b Attribute) bool {
	if text, isText := a.Text(); isText {
		other, isText := b.Text()
		return isText && text == other
	}
	if parts := a.Parts(); parts != nil {
		return slices.EqualFunc(parts, b.Parts(), Attribute.Equal)
	}
	return a.pointer == b.pointer && a.word == b.word
}

// String returns the attribute for people: the text as it is, 7, true, and the parts of
// a composite one with slashes between them. It allocates, except for a text.
func (a Attribute) String() string {
	if number, ok := a.Number(); ok {
		return strconv.FormatInt(number, 10)
	}
	if value, ok := a.Boolean(); ok {
		return strconv.FormatBool(value)
	}
	if parts := a.Parts(); parts != nil {
		texts := make([]string, len(parts))
		for i, part := range parts {
			texts[i] = part.String()
		}
		return strings.Join(texts, "/")
	}
	text, _ := a.Text()
	return text
}

// GoString returns the attribute as Go code makes it, such as rule.Int(7), so that tests can
// compare what attributes are.
func (a Attribute) GoString() string {
	if text, ok := a.Text(); ok {
		return "rule.String(" + strconv.Quote(text) + ")"
	}
	if number, ok := a.Number(); ok {
		return "rule.Int(" + strconv.FormatInt(number, 10) + ")"
	}
	if value, ok := a.Boolean(); ok {
		return "rule.Bool(" + strconv.FormatBool(value) + ")"
	}
	var parts []string
	for _, part := range a.Parts() {
		parts = append(parts, part.GoString())
	}
	return "rule.Attribute{" + strings.Join(parts, ", ") + "}"
}
