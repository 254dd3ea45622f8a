// Package document has the values of rule documents, free of the syntax that they were written in: package rules
// parses and writes documents, and the fields of kinds read values and write them.
package document

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is a value of a document, free of the syntax that it was written in.
type Value struct {
	Type    Type
	Text    string  // of a scalar: as written, without quotes and escapes
	Items   []Value // of a list
	Entries []Entry // of a mapping, in order
}

// Entry is one entry of a mapping.
type Entry struct {
	Key     string
	KeyType Type // how the key is written: "7" is Text, 7 is Number
	Value   Value
}

// Type is what a value looks like.
type Type uint8

// The types of values.
const (
	Null Type = iota
	Boolean
	Number
	Text
	List
	Mapping
)

// String returns what a message says of the value.
func (v Value) String() string {
	switch v.Type {
	case Null:
		return "left empty"
	case Text:
		return Quote(v.Text)
	case List:
		if len(v.Items) == 0 {
			return "an empty list"
		}
		return "a list"
	case Mapping:
		if len(v.Entries) == 0 {
			return "an empty mapping"
		}
		return "a mapping"
	default:
		return v.Text
	}
}

// numeral matches the numbers of the core schema of YAML 1.2, those of JSON
// among them.
var numeral = regexp.MustCompile(`^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?` +
	`|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)

// PlainType returns the type of text that stands in YAML without quotes.
func PlainType(plain string) Type {
	switch plain {
	case "", "~", "null", "Null", "NULL":
		return Null
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return Boolean
	}
	if numeral.MatchString(plain) {
		return Number
	}
	return Text
}

// The functions below read a value, or return what is wrong with it, and write one.
// What they write they read back as the same value.

// ReadText reads text that is not empty.
func ReadText(v Value) (string, string) {
	switch v.Type {
	case Text:
		if v.Text == "" {
			return "", `is "": write something or leave the field out`
		}
		return v.Text, ""
	case Number, Boolean:
		return "", fmt.Sprintf("is %v: must be text; put it in quotes, %q", v, v.Text)
	default:
		return "", fmt.Sprintf("is %v: must be text; if it begins with a bracket, put it in quotes", v)
	}
}

// TextValue returns text as a value.
func TextValue[V ~string](v V) Value { return Value{Type: Text, Text: string(v)} }

// ReadChoice reads text that is one of the values. Empty text is left to whoever
// knows the default.
func ReadChoice[V ~string](v Value, values []V) (V, string) {
	if v.Type == Text && (v.Text == "" || slices.Contains(values, V(v.Text))) {
		return V(v.Text), ""
	}
	quoted, names := make([]string, len(values)), make([]string, len(values))
	for i, v := range values {
		quoted[i], names[i] = strconv.Quote(string(v)), string(v)
	}
	if meant := Nearest(v.Text, names); v.Type == Text && meant != "" {
		return "", fmt.Sprintf("is %v: did you mean %q?", v, meant)
	}
	last := len(quoted) - 1
	if last == 0 {
		return "", fmt.Sprintf("is %v: must be %s", v, quoted[0])
	}
	return "", fmt.Sprintf("is %v: must be %s or %s", v, strings.Join(quoted[:last], ", "), quoted[last])
}

// ReadBoolean reads true or false.
func ReadBoolean(v Value) (bool, string) {
	if v.Type != Boolean {
		return false, fmt.Sprintf("is %v: must be true or false%s", v, unquoted(v, Boolean))
	}
	return strings.EqualFold(v.Text, "true"), ""
}

// BooleanValue returns a boolean as a value.
func BooleanValue(v bool) Value { return Value{Type: Boolean, Text: strconv.FormatBool(v)} }

// leadingZero matches what YAML 1.1 takes for octal and YAML 1.2 for decimal.
var leadingZero = regexp.MustCompile(`^[-+]?0[0-9]`)

// nonzero matches a decimal number that is not zero.
var nonzero = regexp.MustCompile(`^[-+.0]*[1-9]`)

// ReadNumber reads a number, whole or not.
func ReadNumber(v Value) (float64, string) {
	if v.Type != Number {
		return 0, fmt.Sprintf("is %v: must be a number, such as 100 or 2.5%s", v, unquoted(v, Number))
	}
	if leadingZero.MatchString(v.Text) {
		return 0, fmt.Sprintf("is %v: write the number without a leading zero", v)
	}
	number, err := strconv.ParseFloat(v.Text, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, fmt.Sprintf("is %v: must be a decimal number, such as 100 or 2.5", v)
	}
	if number == 0 && nonzero.MatchString(v.Text) {
		return 0, fmt.Sprintf("is %v: it is too small to be told from 0; write 0 or a larger number", v)
	}
	return number, "" // infinite when beyond float64: no range allows that
}

// NumberValue returns a number as a value.
func NumberValue(v float64) Value {
	format := byte('f')
	if size := math.Abs(v); size != 0 && size < 1e-6 || size >= 1e21 {
		format = 'e'
	}
	return Value{Type: Number, Text: strconv.FormatFloat(v, format, -1, 64)}
}

// ReadWhole reads a whole number.
func ReadWhole(v Value) (int, string) {
	number, fault := ReadNumber(v)
	switch {
	case fault != "":
		return 0, fault
	case math.Abs(number) > math.MaxInt32:
		return 0, fmt.Sprintf("is %v: must be a whole number, at most 2147483647", v)
	case number != math.Trunc(number):
		return 0, fmt.Sprintf("is %v: must be a whole number, such as 10", v)
	default:
		return int(number), ""
	}
}

// WholeValue returns a whole number as a value.
func WholeValue(v int) Value { return Value{Type: Number, Text: strconv.Itoa(v)} }

// ReadDuration reads a duration with its unit.
func ReadDuration(v Value) (time.Duration, string) {
	duration, err := time.ParseDuration(v.Text)
	if v.Type != Text || err != nil || numeral.MatchString(v.Text) {
		return 0, fmt.Sprintf(`is %v: write a duration with a unit, such as "500ms" or "1s"`, v)
	}
	return duration, ""
}

// DurationValue returns a duration as a value.
func DurationValue(v time.Duration) Value {
	s := v.String()
	for _, idle := range []string{"m0s", "h0m"} { // 1h0m0s says no more than 1h
		if strings.HasSuffix(s, idle) {
			s = s[:len(s)-2]
		}
	}
	return Value{Type: Text, Text: s}
}

// ReadTime reads an instant, in RFC 3339.
func ReadTime(v Value) (time.Time, string) {
	at, err := time.Parse(time.RFC3339, v.Text)
	switch {
	case v.Type != Text || err != nil:
		return time.Time{}, fmt.Sprintf("is %v: write a time with its offset from UTC, such as 2030-06-01T00:00:00Z", v)
	case at.Before(time.Unix(0, 0)) || at.After(time.Unix(0, math.MaxInt64)):
		return time.Time{}, fmt.Sprintf("is %v: must be from 1970 to 2262", v)
	}
	return at.UTC(), ""
}

// TimeValue returns an instant as a value.
func TimeValue(v time.Time) Value {
	return Value{Type: Text, Text: v.UTC().Format(time.RFC3339Nano)}
}

// unquoted advises to remove the quotes of a text that would be of the type
// without them.
func unquoted(v Value, of Type) string {
	if v.Type == Text && PlainType(v.Text) == of {
		return "; remove the quotes"
	}
	return ""
}
