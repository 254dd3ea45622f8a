package rule

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Strings is a list of texts in a rule. It never changes, and two lists are equal (==)
// when they have the same texts in the same order. The zero value is empty.
type Strings struct{ encoded string }

// StringsOf returns a list of texts.
func StringsOf(items ...string) Strings {
	var b strings.Builder
	for _, item := range items {
		encode(&b, item)
	}
	return Strings{b.String()}
}

// Len returns how many texts the list has.
func (l Strings) Len() int {
	count := 0
	for range l.All() {
		count++
	}
	return count
}

// All yields the texts in order.
func (l Strings) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := l.encoded; rest != ""; {
			var item string
			if item, rest = decode(rest); !yield(item) {
				return
			}
		}
	}
}

// Scalar is a value of a document that is neither a list nor a mapping: 7, "7" and true
// are three.
type Scalar struct {
	Type ValueType // Text, Number or Boolean
	Text string    // as written, without quotes
}

// NumberMap is a mapping in a rule from scalars to numbers, in the order of the document.
// It never changes, and two are equal (==) when they have the same entries in the same
// order. The zero value is empty.
type NumberMap struct{ encoded string }

// NumberMapOf returns a mapping with entries.
func NumberMapOf(entries ...NumberEntry) NumberMap {
	var b strings.Builder
	for _, e := range entries {
		b.WriteByte(byte(e.Key.Type))
		encode(&b, e.Key.Text)
		encode(&b, strconv.FormatFloat(e.Value, 'g', -1, 64))
	}
	return NumberMap{b.String()}
}

// NumberEntry is an entry of a [NumberMap].
type NumberEntry struct {
	Key   Scalar
	Value float64
}

// Len returns how many entries the mapping has.
func (m NumberMap) Len() int {
	count := 0
	for range m.All() {
		count++
	}
	return count
}

// All yields the entries in order.
func (m NumberMap) All() iter.Seq[NumberEntry] {
	return func(yield func(NumberEntry) bool) {
		for rest := m.encoded; rest != ""; {
			e := NumberEntry{Key: Scalar{Type: ValueType(rest[0])}}
			var number string
			e.Key.Text, rest = decode(rest[1:])
			number, rest = decode(rest)
			e.Value, _ = strconv.ParseFloat(number, 64) // NumberMapOf wrote it
			if !yield(e) {
				return
			}
		}
	}
}

// encode writes a text so that decode finds its end.
func encode(b *strings.Builder, text string) {
	b.WriteString(strconv.Itoa(len(text)))
	b.WriteByte(':')
	b.WriteString(text)
}

// decode returns the first text, and what comes after it.
func decode(encoded string) (text, rest string) {
	digits, rest, _ := strings.Cut(encoded, ":")
	length, _ := strconv.Atoi(digits) // encode wrote it
	return rest[:length], rest[length:]
}

// StringsField is a field with a list of texts. A document may write a single text
// without brackets.
func StringsField[R any](path string, at func(*R) *Strings) Field[R] {
	f := newField(path, at, readStrings, stringsValue)
	f.check = func(rule *R) string {
		for item := range at(rule).All() {
			if fault := CheckName(item); fault != "" {
				return "has an entry that " + fault
			}
		}
		return ""
	}
	return f
}

// NumberMapField is a field with a mapping from texts, numbers or booleans to numbers.
func NumberMapField[R any](path string, at func(*R) *NumberMap) Field[R] {
	f := newField(path, at, readNumberMap, numberMapValue)
	f.check = func(rule *R) string {
		for e := range at(rule).All() {
			if fault := CheckName(e.Key.Text); fault != "" {
				return "has a key that " + fault
			}
		}
		return ""
	}
	return f
}

func readStrings(v Value) (Strings, string) {
	if v.Type != List {
		text, fault := readText(v)
		return StringsOf(text), fault
	}
	items := make([]string, len(v.Items))
	for i, item := range v.Items {
		text, fault := readText(item)
		if fault != "" {
			return Strings{}, fmt.Sprintf("has an entry %d that %s", i+1, fault)
		}
		items[i] = text
	}
	return StringsOf(items...), ""
}

func stringsValue(l Strings) Value {
	v := Value{Type: List}
	for item := range l.All() {
		v.Items = append(v.Items, TextValue(item))
	}
	return v
}

func readNumberMap(v Value) (NumberMap, string) {
	if v.Type != Mapping {
		return NumberMap{}, fmt.Sprintf("is %v: must be a mapping to numbers, such as {vip: 1000}", v)
	}
	entries := make([]NumberEntry, len(v.Entries))
	given := make(map[Scalar]bool, len(v.Entries))
	for i, e := range v.Entries {
		key := Scalar{Type: e.KeyType, Text: e.Key}
		number, fault := readNumber(e.Value)
		switch {
		case key.Type == Null || key.Type == List || key.Type == Mapping:
			return NumberMap{}, fmt.Sprintf("has a key that is %v: must be text, a number, true or false", Value{Type: key.Type, Text: key.Text})
		case given[key]:
			return NumberMap{}, fmt.Sprintf("has the key %s twice: remove one", key)
		case fault != "":
			return NumberMap{}, fmt.Sprintf("has an entry %s that %s", key, fault)
		}
		given[key] = true
		entries[i] = NumberEntry{Key: key, Value: number}
	}
	return NumberMapOf(entries...), ""
}

func numberMapValue(m NumberMap) Value {
	v := Value{Type: Mapping}
	for e := range m.All() {
		v.Entries = append(v.Entries, Entry{Key: e.Key.Text, KeyType: e.Key.Type, Value: numberValue(e.Value)})
	}
	return v
}

// String returns the scalar as a document writes it.
func (s Scalar) String() string { return Value{Type: s.Type, Text: s.Text}.String() }
